#!/bin/sh
# Builds what a release publishes, into dist/: wheels and sdists of the five packages, their bill of materials (CycloneDX)
# and SHA256SUMS. The same commit gives the same bytes. release.sh [TAG]: checks that the versions are the tag's.
set -eu
cd "$(git rev-parse --show-toplevel)"
uv=${UV:-.venv/bin/uv}
say() { echo "$*" >&2; }

[ -z "$(git status --porcelain)" ] || { say "a release is built of a commit: commit or undo your changes"; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
# Each package has the version of its own line, of its code, and of every line that pins another of the five.
told=$(grep -hoE '^version = "[^"]+"|^__version__ = "[^"]+"|"seatrial[a-z-]*(\[[a-z]+\])?==[^"]+"' \
    pyproject.toml packages/*/pyproject.toml packages/seatrial-base/seatrial_base/__init__.py 2>/dev/null |
    sed -E 's/.*(==|= ")([^"]+)"$/\2/' | sort -u)
[ "$told" = "$version" ] || { say "the packages have several versions:" $told; exit 1; }
[ -z "${1:-}" ] || [ "$1" = "v$version" ] || { say "the tag is $1, the packages are v$version"; exit 1; }

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022
rm -rf dist
constraints=$(mktemp)
trap 'rm -f "$constraints"' EXIT
echo 'hatchling==1.33.0' >"$constraints" # another one may write other bytes
"$uv" build --quiet --all-packages --build-constraints "$constraints" --out-dir dist
rm -f dist/.gitignore
# Without its number, drawn by chance, and its time; CycloneDX requires neither.
"$uv" export --quiet --frozen --no-dev --all-packages --all-extras --format cyclonedx1.5 2>/dev/null |
    sed -e '/^  "serialNumber": /d' -e '/^    "timestamp": /d' >"dist/seatrial-$version.cdx.json"
cd dist
hash() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }
hash -- * >../.SHA256SUMS
mv ../.SHA256SUMS SHA256SUMS
cat SHA256SUMS
