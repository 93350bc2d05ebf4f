#!/usr/bin/env bash
# Makes the files of a release in bin/release: for amd64 and arm64 a binary archive, bill of
# materials, deb and rpm; the image of both as an OCI archive; the chart; the clients' packages; and
# their checksums, signed if RELEASE_KEY names a minisign key (its password in RELEASE_KEY_PASSWORD).
# A version that is not that of VERSION is a snapshot; a release needs its tag and its CHANGELOG.
# usage: deploy/release.sh VERSION COMMIT
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$1
commit=$2
arches=${RELEASE_ARCHES:-amd64 arm64}
out=${RELEASE_OUT:-$PWD/bin/release}
stage=$PWD/bin/stage
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

say() { printf '== %s (%ss)\n' "$1" "$SECONDS"; }

# archive FILE DIR NAME…: a reproducible .tar.gz
archive() {
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$2" -cf - "${@:3}" | gzip -9n >"$1"
}

if [ "$version" = "$(cat VERSION)" ]; then
	grep -q "^## $version\b" CHANGELOG.md || {
		echo "CHANGELOG.md has no section \"## $version\"" >&2
		exit 1
	}
	VULN_REQUIRED=true .ci/vuln
fi

rm -rf "$out" "$stage"
mkdir -p "$out" "$stage"

say "man pages, completion"
mkdir -p "$stage/man" "$stage/completion"
go run -tags man ./cmd/trunkline man "$stage/man"
gzip -9n "$stage"/man/*.1
for arch in $arches; do
	say "trunkline for $arch"
	IMAGE_ARCH=$arch deploy/image.sh "$version" "$commit" "$stage/$arch/image"
	cp "$stage/$arch/image/trunkline" "$stage/$arch/trunkline"
	cp LICENSE README.md CHANGELOG.md "$stage/$arch/image/THIRD_PARTY_NOTICES" "$stage/$arch/"
	for unit in trunkline trunkline-recording-send; do
		sed 's#@PREFIX@#/usr#' "deploy/systemd/$unit.service" >"$stage/$arch/$unit.service"
	done
	if [ "$arch" = "$(go env GOHOSTARCH)" ]; then
		"$stage/$arch/trunkline" completion bash >"$stage/completion/trunkline.bash"
		"$stage/$arch/trunkline" completion zsh >"$stage/completion/_trunkline"
		"$stage/$arch/trunkline" completion fish >"$stage/completion/trunkline.fish"
	fi
done

for arch in $arches; do
	say "packages for $arch"
	cp -r "$stage/man" "$stage/completion" "$stage/$arch/"
	archive "$out/trunkline_${version}_linux_$arch.tar.gz" "$stage/$arch" trunkline trunkline.service LICENSE THIRD_PARTY_NOTICES README.md CHANGELOG.md man completion
	go run -C .ci/sbom . "$stage/$arch/trunkline" "$PWD" "$version" >"$out/trunkline_${version}_linux_$arch.cdx.json"
	sed -e "s#\${ARCH}#$arch#; s#\${VERSION}#$version#; s#\${STAGE}#$stage/$arch#" \
		deploy/package/nfpm.yaml >"$stage/$arch/nfpm.yaml"
	for kind in deb rpm; do
		go tool -modfile=.ci/release/go.mod nfpm package --config "$stage/$arch/nfpm.yaml" --packager "$kind" --target "$out/"
	done
done

say "image"
images=()
for arch in $arches; do images+=("$arch=$stage/$arch/image"); done
go run -C .ci/release . image "$version" "$out/trunkline_${version}_oci.tar" "${images[@]}"

say "chart, clients"
mkdir -p "$stage/chart"
cp -r deploy/helm/trunkline "$stage/chart/"
sed -i "s/^version: .*/version: $version/; s/^appVersion: .*/appVersion: \"$version\"/" "$stage/chart/trunkline/Chart.yaml"
archive "$out/trunkline-chart-$version.tgz" "$stage/chart" trunkline
cp -r clients/js "$stage/js"
npm --prefix "$stage/js" pkg set "version=$version" >/dev/null
(cd "$stage/js" && npm pack --silent --pack-destination "$out" >/dev/null)
cp -r clients/python "$stage/python"
sed -i "s/^version = .*/version = \"${version/-dev./.dev0+}\"/" "$stage/python/pyproject.toml"
python3 -m venv "$stage/venv"
"$stage/venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$out" "$stage/python"

say "checksums"
(cd "$out" && sha256sum -- * >"$stage/SHA256SUMS" && mv "$stage/SHA256SUMS" .)
if [ -n "${RELEASE_KEY:-}" ]; then
	go run -C .ci/release . sign "$RELEASE_KEY" "$out/SHA256SUMS"
else
	echo "not signed: RELEASE_KEY names no minisign key" >&2
fi
rm -rf "$stage"
ls -l "$out"
