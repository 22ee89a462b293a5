#!/bin/bash
# Builds a node image for kind from Debian packages and Go modules, without a container registry. It needs root, Linux,
# a Docker engine, debootstrap and Go.
#   build.sh DIRECTORY [TAG]
# DIRECTORY keeps what later builds take over. With COMPRESS=1 the image is smaller and takes longer; MIRROR names
# another Debian mirror. An image that was built from the same files is not built again.
set -eu
work=$(realpath -m "$1")
cd "$(dirname "$0")"
version=$(sed -n 's/^\tk8s.io\/kubernetes \(v[0-9.]*\)$/\1/p' go.mod)
tag=${2:-spokelet/node:$version}
base=spokelet/node-rootfs:bookworm
label=io.spokelet.node-image.source
bin=$work/bin
root=$work/rootfs
# There may be no buildx.
export DOCKER_BUILDKIT=0
say() { echo "$(date +%T) $*"; }
fail() {
    echo "building the node image: $*" >&2
    exit 1
}

docker version >/dev/null 2>&1 || fail "no Docker engine answers: start dockerd (docs/operations/e2e.md)"
source=$({ find . -type f -print0 | sort -z | xargs -0 sha256sum; echo "compress=${COMPRESS:-}"; } | sha256sum | cut -c1-64)
built=$(docker image inspect --format "{{index .Config.Labels \"$label\"}}" "$tag" 2>/dev/null || true)
if [ "$built" = "$source" ]; then
    say "$tag is up to date"
    exit 0
fi
[ "$(id -u)" = 0 ] || fail "debootstrap needs root"
command -v debootstrap >/dev/null || fail "debootstrap is not installed: apt-get install debootstrap"
mkdir -p "$work"

say "programs (from cold some minutes)"
./build-programs.sh "$bin"

if ! docker image inspect $base >/dev/null 2>&1 || [ ! -f "$work/rootfs.done" ] ||
    ! cmp -s packages.txt "$work/rootfs.done"; then
    say "root file system"
    rm -rf "$root" "$work/rootfs.done"
    debootstrap --variant=minbase --include="$(tr -s ' \n' ',' <packages.txt | sed 's/,$//')" \
        bookworm "$root" ${MIRROR:+"$MIRROR"} >"$work/debootstrap.log" || fail "see $work/debootstrap.log"
    (cd "$root" && rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/{doc,locale,man}/* var/log/*)
    tar -C "$root" -c . | docker import - $base >/dev/null
    cp packages.txt "$work/rootfs.done"
fi

# The images that kubeadm of this version names, by these very names, so that a node pulls nothing.
named() { "$bin/kubeadm" config images list --kubernetes-version "$version" 2>/dev/null | grep "/$1:"; }
build() { docker build -q -t "$1" "$2" >"$work/build.log" 2>&1 || fail "image $1: $(cat "$work/build.log")"; }
single() { # IMAGE PROGRAM PATH
    context=$work/images/$2
    rm -rf "$context"
    mkdir -p "$context"
    ln "$bin/$2" "$context/bin"
    printf 'FROM scratch\nCOPY bin %s\nENTRYPOINT ["%s"]\n' "$3" "$3" >"$context/Dockerfile"
    build "$1" "$context"
}
say "images of the control plane"
for program in kube-apiserver kube-controller-manager kube-scheduler etcd; do
    single "$(named $program)" $program /usr/local/bin/$program
done
single "$(named coredns)" coredns /coredns
single "$(named pause)" pause /pause

# kube-proxy runs iptables, nft and conntrack; they come with their libraries and modules, and nothing else does.
context=$work/images/kube-proxy
tree=$context/r
rm -rf "$context"
mkdir -p "$tree"/{usr/sbin,usr/local/bin,usr/lib,lib64,run,tmp,etc}
ln -s usr/lib "$tree/lib"
ln -s usr/sbin "$tree/sbin"
programs="/usr/sbin/xtables-nft-multi /usr/sbin/nft /usr/sbin/conntrack"
for program in $programs; do cp "$root$program" "$tree/usr/sbin/"; done
modules=$(cd "$root" && echo usr/lib/*-linux-gnu/xtables)
mkdir -p "$tree/$modules"
cp -a "$root/$modules/." "$tree/$modules/"
chroot "$root" sh -c "ldd $programs /$modules/*.so" |
    sed -n 's|.*[[:space:]]\(/[^ ]*\.so[^ ]*\) (0x.*|\1|p' | sort -u | while read -r library; do
    mkdir -p "$tree$(dirname "$library")"
    cp -L "$root$library" "$tree$library"
done
for name in iptables ip6tables; do
    for suffix in '' -save -restore; do ln -s xtables-nft-multi "$tree/usr/sbin/$name$suffix"; done
done
cp "$root"/etc/{protocols,services} "$tree/etc/"
ln "$bin/kube-proxy" "$tree/usr/local/bin/"
cat >"$context/Dockerfile" <<'END'
FROM scratch
COPY r/ /
ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin
ENTRYPOINT ["/usr/local/bin/kube-proxy"]
END
build "$(named kube-proxy)" "$context"
# A rule as kube-proxy writes it for a Service with several endpoints: a library that is missing shows here.
docker run --rm --network none --cap-add NET_ADMIN --entrypoint /usr/sbin/iptables "$(named kube-proxy)" \
    -t nat -A OUTPUT -m statistic --mode random --probability 0.5 -m recent --name x --rcheck -j MARK --or-mark 0x4000

say "node"
context=$work/node
rm -rf "$context"
mkdir -p "$context"/{bin,cni}
cp -a Dockerfile files "$context/"
for program in kubelet kubeadm kubectl crictl; do ln "$bin/$program" "$context/bin/"; done
for program in host-local loopback ptp portmap; do ln "$bin/$program" "$context/cni/"; done
printf %s "$version" >"$context/files/kind/version"
sed -i "s|@PAUSE@|$(named pause)|" "$context/files/etc/containerd/config.toml"
build "$tag-empty" "$context"

# The containerd of the node gets the images in a container of its own, which becomes the node image.
say "images into the node"
container=spokelet-node-build-$$
trap 'docker rm -f -v $container >/dev/null 2>&1 || true' EXIT
docker run -d --name $container --network none --security-opt seccomp=unconfined --entrypoint sleep \
    "$tag-empty" infinity >/dev/null
docker exec -d $container containerd
for _ in $(seq 100); do
    docker exec $container ctr version >/dev/null 2>&1 && break
    sleep 0.2
done
images=$(for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd coredns pause; do named $name; done)
# shellcheck disable=SC2086 # one word for each image
docker save $images |
    docker exec -i $container ctr -n k8s.io images import --no-unpack ${COMPRESS:+--compress-blobs} - >/dev/null
docker exec $container sh -c \
    'pkill containerd; while pidof containerd >/dev/null; do sleep 0.1; done; rm -rf /run/containerd'
docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint","/sbin/init"]' --change 'CMD []' \
    --change "LABEL $label=$source" $container "$tag" >/dev/null
say "done: $(docker image ls --format '{{.Repository}}:{{.Tag}} {{.Size}}' "$tag")"
