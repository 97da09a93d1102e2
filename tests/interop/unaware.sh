#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Programs that have no use for the library and must not notice it: bash pipelines, git (it does serve git's pack
# threads), a program without threads, a static one, a setuid one. Standard output, standard error and exit status are
# the oracle's.
. "$(dirname "$0")/lib.sh"
need git

# The same author, clock and settings for every variant, so that commit names are comparable.
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE='1700000000 +0000' GIT_CONFIG_NOSYSTEM=1
export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org GIT_COMMITTER_DATE='1700000000 +0000'
git config --global pack.threads 4
git config --global index.threads 4
git config --global init.defaultBranch main
git config --global grep.threads 4

# Messages name the variant's directory; nothing else may differ.
unnamed() {
    sed -i "s/$variant\.repo/REPO/g; s/$variant\.clone/CLONE/g; s/$variant\.text/TEXT/g" "$@"
}

git_session() {
    local repo=$scratch/$variant.repo clone=$scratch/$variant.clone
    check_run "git: init, add, commit, repack, clone, gc, fsck, grep" 90 bash -e "$here/subjects/git-session.sh" \
        "$repo" "$clone"
    unnamed "$variant.out" "$variant.err"
    keep git
    mv "$variant.err" "$variant.git-err"
    same "git: standard output" git
    check "git: standard error" cmp plain.git-err "$variant.git-err"
}

bash_session() {
    check_run "bash: pipelines, jobs, traps, substitutions" 60 bash "$here/subjects/bash-session.sh"
    keep bash
    mv "$variant.err" "$variant.bash-err"
    same "bash: standard output" bash
    check "bash: standard error" cmp plain.bash-err "$variant.bash-err"
}

without_threads() {
    local status
    run 20 "$bin/lonely" >"$variant.lonely" 2>"$variant.lonely-err"
    status=$?
    check "program without threads: exit status 42" test "$status" = 42
    same "program without threads: standard output" lonely
    check "program without threads: standard error" cmp plain.lonely-err "$variant.lonely-err"
}

# The dynamic linker is not asked, so there is nothing to see but the program itself. The launcher may say so, in a
# line of its own on standard error.
static() {
    local status
    run 20 "$bin/lonely-static" >"$variant.static" 2>"$variant.static-err"
    status=$?
    check "static program: exit status 42" test "$status" = 42
    same "static program: standard output" static
    check "static program: its line on standard error, at most one more" sh -c "grep -qx 'one line on stderr' \
        $variant.static-err && test \$(wc -l <$variant.static-err) -le 2"
}

# ld.so ignores the preload in a program that gains privileges; the program must run as if nothing had been asked for.
setuid() {
    local status program=$scratch/lonely-setuid
    if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
        n_points=$((n_points + 1))
        echo "ok $n_points - $variant: setuid program # SKIP only root can make one and leave root"
        return
    fi
    cp "$bin/lonely" "$program"
    chmod 4755 "$program"
    chmod 755 "$scratch"
    run 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$program" >"$variant.setuid" 2>"$variant.setuid-err"
    status=$?
    check "setuid program: exit status 42" test "$status" = 42
    same "setuid program: standard output" setuid
    check "setuid program: its line on standard error" grep -qx 'one line on stderr' "$variant.setuid-err"
}

unaware() {
    git_session
    bash_session
    without_threads
    static
    setuid
}

each_variant unaware
finish
