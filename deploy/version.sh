#!/bin/sh
# Prints the version of this checkout: that of the file VERSION where the commit has its tag
# (vVERSION) and nothing is changed, else VERSION-dev.COMMIT, with .changed if something is.
# usage: deploy/version.sh [date [COMMIT]]    date: prints when the commit was made, in UTC
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" = date ]; then
	TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd "${2:-HEAD}" 2>/dev/null || echo unknown
	exit
fi

version=$(cat VERSION)
commit=$(git rev-parse --short=8 HEAD 2>/dev/null || echo unknown)
changed=
[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || changed=.changed

if [ -z "$changed" ] && git tag --points-at HEAD 2>/dev/null | grep -qx "v$version"; then
	echo "$version"
else
	echo "$version-dev.$commit$changed"
fi
