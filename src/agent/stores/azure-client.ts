/** The client of an Azure Blob Storage container. */
import {
  BlobServiceClient,
  ContainerClient,
  type StoragePipelineOptions,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { MOUNTS, type Place } from '../../domain/agent-task.ts';
import { AgentFailure, misconfigured } from '../failure.ts';
import { checkEndpoint, httpAgent, httpsAgent } from '../transfer/ssrf-guard.ts';
import { trusting } from './ca.ts';
import { requireNamed, requireOwn } from './own-endpoint.ts';
import type { ReadSecret } from './store.ts';

export type AzurePlace = Extract<Place, { readonly kind: 'azure' }>;

/** Retries: see retry.ts. The library does not follow redirects to other hosts. */
const OPTIONS: StoragePipelineOptions = { retryOptions: { maxTries: 1 } };

const OWN = [
  '.blob.core.windows.net',
  '.blob.storage.azure.net',
  '.blob.core.usgovcloudapi.net',
  '.blob.core.chinacloudapi.cn',
];
/** Anything else would be another host, or a path. */
const ACCOUNT = /^[a-z0-9]{3,24}$/;

export async function azureContainer(place: AzurePlace, secrets: ReadSecret): Promise<ContainerClient> {
  try {
    const service = place.credentials === 'secret' ? await fromSecret(place, secrets) : await ambient(place);
    return guarded(service.getContainerClient(place.container), await trusting(place, secrets));
  } catch (error) {
    // The library quotes the text that it could not parse, which is a secret.
    throw error instanceof AgentFailure
      ? error
      : misconfigured(
          `the credentials or the endpoint of the container "${place.container}" cannot be used: check their form`,
        );
  }
}

/** A connection string may contain the endpoint. */
function guarded({ url, credential }: ContainerClient, tls: { readonly ca?: string[] }): ContainerClient {
  const at = new URL(url);
  checkEndpoint(at);
  const options = { ...OPTIONS, agent: at.protocol === 'https:' ? httpsAgent(tls) : httpAgent() };
  return new ContainerClient(url, credential, options);
}

const ENDPOINT = 'AZURE_STORAGE_ENDPOINT';

async function fromSecret(place: AzurePlace, secrets: ReadSecret): Promise<BlobServiceClient> {
  const read = async (key: string): Promise<string> =>
    (await secrets(MOUNTS.credentials, key))?.toString('utf8').trim() ?? '';
  const whole = await read('AZURE_STORAGE_CONNECTION_STRING');
  if (whole !== '') return BlobServiceClient.fromConnectionString(whole, OPTIONS);
  const account = place.account ?? (await read('AZURE_STORAGE_ACCOUNT'));
  const [key, token] = [await read('AZURE_STORAGE_KEY'), await read('AZURE_STORAGE_SAS_TOKEN')];
  if (token !== '') {
    const url = endpoint(place, account);
    requireNamed(new URL(url), OWN, { what: 'a SAS token', key: ENDPOINT, named: await read(ENDPOINT) });
    return new BlobServiceClient(`${url}?${token.replace(/^\?/, '')}`, undefined, OPTIONS);
  }
  if (key === '' || account === '')
    throw misconfigured(
      'the Secret with the credentials of the container needs AZURE_STORAGE_ACCOUNT and one of AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN, or AZURE_STORAGE_CONNECTION_STRING',
    );
  return new BlobServiceClient(endpoint(place, account), new StorageSharedKeyCredential(account, key), OPTIONS);
}

async function ambient(place: AzurePlace): Promise<BlobServiceClient> {
  const url = endpoint(place, place.account ?? '');
  requireOwn(new URL(url), OWN);
  const { ambientCredential } = await import('./azure-identity.ts');
  return new BlobServiceClient(url, ambientCredential(), OPTIONS);
}

function endpoint(place: AzurePlace, account: string): string {
  if (place.endpoint === undefined && account === '')
    throw misconfigured(
      `the storage account of the container "${place.container}" is missing: set azure.account, or AZURE_STORAGE_ACCOUNT in the Secret`,
    );
  if (place.endpoint === undefined && !ACCOUNT.test(account))
    throw misconfigured(
      `the account of the container "${place.container}" is not valid: it must have 3 to 24 characters of a-z and 0-9`,
    );
  const url = URL.parse(place.endpoint ?? `https://${account}.blob.core.windows.net`);
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== '')
    throw misconfigured('the endpoint of the container is not a URL such as https://account.blob.core.windows.net');
  return url.href.replace(/\/$/, '');
}
