#!/bin/sh
# Fills a folder with the content of the image: the binary, its licence and those of what it
# contains, the certificates of the authorities, an empty data directory. The result is reproducible from source, Go and version.
# IMAGE_ARCH is the architecture of the binary (this machine's).
# usage: deploy/image.sh VERSION COMMIT FOLDER
set -eu

version=$1
commit=$2
folder=$3
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)} # the commit's time
date=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)

rm -rf "$folder"
mkdir -p "$folder/etc/ssl/certs" "$folder/var/lib/trunkline"
chmod 700 "$folder/var/lib/trunkline"

GOARCH=${IMAGE_ARCH:-} CGO_ENABLED=0 go build -trimpath -buildvcs=false \
	-ldflags "-s -w -buildid= -X main.version=$version -X main.commit=$commit -X main.date=$date" \
	-o "$folder/trunkline" ./cmd/trunkline

cp LICENSE "$folder/LICENSE"
go run -C .ci/sbom ./notices "$(readlink -f "$folder")/trunkline" "$PWD" >"$folder/THIRD_PARTY_NOTICES"

authorities=
for one in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
	[ ! -r "$one" ] || { authorities=$one && break; }
done
[ "$authorities" ] || {
	echo "no certificates of authorities on this machine: install ca-certificates" >&2
	exit 1
}
cp "$authorities" "$folder/etc/ssl/certs/ca-certificates.crt"
chmod 644 "$folder/etc/ssl/certs/ca-certificates.crt"

# The layers of the image contain the files' times.
find "$folder" -exec touch -d @"$epoch" {} +
