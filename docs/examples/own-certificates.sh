#!/bin/sh
# Certificates for the cluster of tls-own-secrets.yaml, made with openssl:
#   sh own-certificates.sh CLUSTER NAMESPACE FOLDER
# Then create the Secrets, each with tls.crt, tls.key and ca.crt; the last one is for your application:
#   for name in server peer operator application; do
#     kubectl create secret generic CLUSTER-$name -n NAMESPACE --from-file=FOLDER/$name
#   done
set -eu
cluster=$1 namespace=$2 folder=$3
domain=cluster.local # of the Kubernetes cluster
client_ca=$folder/client-ca peer_ca=$folder/peer-ca
member="*.$cluster.$namespace.svc"
service="$cluster-client.$namespace.svc"

make_ca() { # a folder
  mkdir -p "$1"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=$(basename "$1")" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout "$1/tls.key" -out "$1/tls.crt" 2>/dev/null
}

issue() { # name, folder of the CA, extended key usages, subject alternative names
  mkdir -p "$folder/$1"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
    -keyout "$folder/$1/tls.key" -out "$folder/$1.csr" 2>/dev/null
  printf 'keyUsage=critical,digitalSignature\nextendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}" > "$folder/$1.ext"
  openssl x509 -req -in "$folder/$1.csr" -CA "$2/tls.crt" -CAkey "$2/tls.key" -CAcreateserial -days 365 \
    -extfile "$folder/$1.ext" -out "$folder/$1/tls.crt" 2>/dev/null
  cp "$2/tls.crt" "$folder/$1/ca.crt"
  rm "$folder/$1.csr" "$folder/$1.ext"
}

umask 077
make_ca "$client_ca"
make_ca "$peer_ca" # another one: a client certificate must not be accepted at the peer port
issue server "$client_ca" serverAuth,clientAuth "DNS:$member,DNS:$service,DNS:localhost,IP:127.0.0.1"
issue peer "$peer_ca" serverAuth,clientAuth "DNS:$member,DNS:$member.$domain"
issue operator "$client_ca" clientAuth
issue application "$client_ca" clientAuth
echo "made in $folder: server, peer, operator, application; keep client-ca and peer-ca in a safe place"
