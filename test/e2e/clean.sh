#!/bin/sh
# Removes what runs of "make e2e" left behind that were killed: containers with their volumes, networks, kubeconfigs.
#   clean.sh DIRECTORY
# DIRECTORY is the work directory of the runs. The networks whose label names it are theirs, and so are the containers on
# these networks whose names begin as theirs; nothing else is touched.
set -eu
prefix=spokelet-e2e-
label=io.spokelet.e2e.owner
owner=$(realpath -m "$1")
if ! command -v docker >/dev/null || ! docker version >/dev/null 2>&1; then
    # Without an engine there are no containers. What a stopped engine has is found when it runs again.
    if [ -n "$(find "$owner" -name '*.kubeconfig' 2>/dev/null)" ]; then
        echo "no Docker engine answers, so clusters of $owner are not removed: start it and run this again" >&2
        exit 1
    fi
    exit 0
fi
for network in $(docker network ls --quiet --filter "label=$label=$owner"); do
    for container in $(docker ps --all --quiet --filter "network=$network" --filter "name=^/?$prefix"); do
        docker rm --force --volumes "$container" >/dev/null
    done
    docker network rm "$network" >/dev/null
done
find "$owner" -name "$prefix*.kubeconfig*" -delete 2>/dev/null || true
