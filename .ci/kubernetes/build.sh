#!/usr/bin/env bash
# Builds what .ci/kubernetes/run.sh needs into a folder: Kubernetes, etcd, Helm and the network
# plugins from their modules, and the images of this Trunkline and of the version before. The first
# build takes about twenty minutes of CPU; a change of go.mod repeats it. It needs Go, git and the
# network, for modules.
# usage: .ci/kubernetes/build.sh FOLDER [REVISION OF THE VERSION BEFORE]
set -euo pipefail
folder=$1
revision=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export GOFLAGS='-trimpath -buildvcs=false'
say() { printf '== %s (%ss)\n' "$1" "$SECONDS"; }

mkdir -p "$folder/bin"
kubernetes=$(go list -C .ci/kubernetes -m -f '{{.Version}}' k8s.io/kubernetes)
flags='-s -w' # without its version Kubernetes takes itself for 0.0
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags+=" -X $package.gitVersion=$kubernetes -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<<"$kubernetes")"
done
built=$(sha256sum .ci/kubernetes/go.mod)
if [ "$built" != "$(cat "$folder/built" 2>/dev/null)" ]; then
	for tool in $(go list -C .ci/kubernetes tool); do
		name=$(basename "${tool%/server/v3}")
		say "$name"
		CGO_ENABLED=0 nice go build -C .ci/kubernetes -p "${KUBERNETES_BUILD_JOBS:-2}" -ldflags "$flags" -o "$folder/bin/$name" "$tool"
	done
	echo "$built" >"$folder/built"
fi
(cd .ci/s3 && go build -o "$folder/bin/s3" .)
go build -o "$folder/bin/" ./cmd/trunkline-bench ./internal/testservice/cmd/services

# image NAME PROGRAM: an archive with one image, trunkline:NAME
image() {
	cp "$2" "$folder/image/trunkline"
	SOURCE_DATE_EPOCH=0 go run -C .ci/release . image "$1" "$folder/$1.tar" "$(go env GOARCH)=$folder/image"
}
say images
deploy/image.sh "$(deploy/version.sh)" "$(git rev-parse HEAD)" "$folder/image"
cp "$folder/image/trunkline" "$folder/bin/trunkline"
image this "$folder/bin/trunkline"
image before "$(deploy/before.sh "$revision")"
CGO_ENABLED=0 go build -C .ci/kubernetes -ldflags '-s -w' -o "$folder/bin/pause" ./pause
image pause "$folder/bin/pause"
