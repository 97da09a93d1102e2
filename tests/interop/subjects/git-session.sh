# SPDX-License-Identifier: LGPL-2.1-or-later
# Arguments: repository and clone to make. Everything it prints is a function of its input.
set -e
git init -q "$1"
cd "$1"
for i in $(seq 40); do
    mkdir -p "d$((i % 7))"
    seq $((i * 50)) $((i * 90)) >"d$((i % 7))/file$i"
    git add .
    git commit -q -m "commit $i"
done
git checkout -q -b side HEAD~10
echo side >side
git add side
git commit -q -m side
git merge -q --no-edit main
git log --format='%H %s' | head -n 3
git repack -q -a -d -f --threads=4
git count-objects -v | grep -E '^(count|packs|in-pack):'
git clone -q "file://$1" "$2"
cd "$2"
git gc -q --prune=now
git fsck --full --no-progress
git grep -c 333 | sort | head -n 5
git status --short
git diff --stat HEAD~5 | tail -n 1
git rev-parse HEAD 'HEAD^{tree}'
git no-such-command || echo "status $?"
git checkout no-such-branch || echo "status $?"
