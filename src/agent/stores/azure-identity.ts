/** The Pod's identity in Azure. A file of its own: the library is large and loaded only where it is needed. */
import { ManagedIdentityCredential, type TokenCredential, WorkloadIdentityCredential } from '@azure/identity';

/** What a service account with a workload identity injects into its Pods; without it, the node's identity is used. */
export const ambientCredential = (): TokenCredential =>
  process.env['AZURE_FEDERATED_TOKEN_FILE'] === undefined
    ? new ManagedIdentityCredential()
    : new WorkloadIdentityCredential();
