/** Who the Pod is to Azure. A file of its own: the library is large and loaded only where it is needed. */
import { ManagedIdentityCredential, type TokenCredential, WorkloadIdentityCredential } from '@azure/identity';

/** What a service account with an identity puts into its Pods; without it, the node's identity is asked for. */
export const ambientCredential = (): TokenCredential =>
  process.env['AZURE_FEDERATED_TOKEN_FILE'] === undefined
    ? new ManagedIdentityCredential()
    : new WorkloadIdentityCredential();
