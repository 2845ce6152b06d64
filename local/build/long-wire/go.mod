module etcd-operator.local/long-wire

go 1.26.0
