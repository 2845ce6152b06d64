/** The address of a Pod as a URL. */
export const endpointOf = (ip: string, port: number, scheme: 'http' | 'https' = 'http'): string =>
  `${scheme}://${ip.includes(':') ? `[${ip}]` : ip}:${port}`;
