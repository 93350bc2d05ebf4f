#!/usr/bin/env bash
# Builds the program of an earlier revision, once, and prints its path.
# usage: deploy/before.sh [REVISION]
#   REVISION   by default the last tag before this commit; before the first one, the commit before
#              the newest migration of the database
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
revision=${1:-}
[ "$revision" ] || revision=$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null) ||
	revision=$(git log -1 --format=%H --diff-filter=A -- '*/migrations/*.sql')^
commit=$(git rev-parse --verify "$revision^{commit}")
folder=${XDG_CACHE_HOME:-$HOME/.cache}/trunkline/before/$commit

if [ ! -x "$folder/trunkline" ]; then
	source=$(mktemp -d)
	trap 'rm -rf "$source"' EXIT
	git archive "$commit" | tar -x -C "$source"
	echo "building $(git log -1 --format='%h of %cs' "$commit")" >&2
	mkdir -p "$folder"
	CGO_ENABLED=0 go build -C "$source" -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.version=$(cat "$source/VERSION")-before -X main.commit=$commit -X main.date=$(deploy/version.sh date "$commit")" -o "$folder/" ./cmd/trunkline
fi
echo "$folder/trunkline"
