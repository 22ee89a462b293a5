#!/bin/bash
# Compiles every program of the node image, static, from the Go modules that this module pins.
#   build-programs.sh DIRECTORY
set -eu
out=$(realpath -m "$1")
cd "$(dirname "$0")"
version=$(sed -n 's/^\tk8s.io\/kubernetes \(v[0-9.]*\)$/\1/p' go.mod)
minor=${version#v1.}
minor=${minor%%.*}
stamp=k8s.io/component-base/version
flags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean"
flags="$flags -X $stamp.gitCommit=0000000000000000000000000000000000000000 -X $stamp.buildDate=2026-01-01T00:00:00Z"
# The settings of the Makefile, so that packages that test/kube compiled are not compiled again.
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
mkdir -p "$out"
go build -ldflags "$flags" -o "$out/" ./cmd/... \
    k8s.io/kubernetes/cmd/{kubelet,kubeadm,kubectl,kube-proxy,kube-scheduler,kube-apiserver,kube-controller-manager} \
    github.com/containernetworking/plugins/plugins/{ipam/host-local,main/loopback,main/ptp,meta/portmap}
# A program is named after the last element of its path, which is "v3" for etcd.
go build -ldflags "$flags" -o "$out/etcd" go.etcd.io/etcd/server/v3
echo "$version" >"$out/VERSION"
