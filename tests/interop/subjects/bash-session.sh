# SPDX-License-Identifier: LGPL-2.1-or-later
# What shells do all day: pipelines, substitutions, jobs, traps, here-documents, errors on both streams.
seq 20000 | sort -r | grep 7 | awk '{ s += $1 } END { print s }'
echo "$(for i in 1 2 3; do (echo "$i" | cat | tr 1-3 a-c); done)"
diff <(seq 10) <(seq 2 11)
pids=
for i in 1 2 3 4 5; do
    (exit "$i") &
    pids="$pids $!"
done
total=0
for pid in $pids; do
    wait "$pid"
    total=$((total + $?))
done
echo "jobs $total"
(trap 'echo trapped; exit 7' TERM; kill -TERM "$BASHPID"; sleep 5)
echo "status $?"
false | true | (exit 3)
echo "${PIPESTATUS[@]}"
cat <<HERE | wc -c
text $((6 * 7))
HERE
seq 100000 | head -n 1
ls /no/such/file
bash -c 'echo to-stderr >&2; exit 9'
echo "status $?"
read -r -t 10 word < <(echo word)
echo "$word"
printf '%s\n' one two three | xargs -P 3 -n 1 echo | sort
env | grep -c '^HOME='
no_such_command_at_all
echo "status $?"
