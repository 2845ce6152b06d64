module etcd-operator.local/pause

go 1.26.0
