/** The Pod that a member has, or gets when it has none. */
import { wantsAuth } from '../../api/tls.ts';
import type { Pod } from '../../gen/kube.ts';
import { type InitialState, memberPod } from './build.ts';
import { hasJoined, isClusterFormed, type Observed } from './observed.ts';

export type PodInputs = Pick<Observed, 'member' | 'cluster' | 'images' | 'hasCompany'>;

/** Only the seed bootstraps, and only while no cluster id is recorded: a second bootstrap would be an empty cluster. No member joins twice. */
const wantedInitialState = (o: PodInputs): InitialState => {
  if (hasJoined(o)) return 'nothing';
  return o.member.spec.bootstrap === true ? 'cluster' : 'member';
};

export const votes = (o: PodInputs): boolean => isClusterFormed(o) && o.member.status?.isVoter === true;

export const wantedPod = (o: PodInputs): Pod => {
  const { member, cluster, hasCompany, images } = o;
  return memberPod(member, {
    imageRepository: images.repository,
    initialState: wantedInitialState(o),
    votes: votes(o),
    hasCompany,
    ...(images.operator !== undefined && {
      restore: { operatorImage: images.operator, auth: cluster !== undefined && wantsAuth(cluster.spec) },
    }),
    ...(cluster?.status?.trust && { trust: cluster.status.trust }),
  });
};
