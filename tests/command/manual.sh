#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Help, manual, completion and installation agree with what the command accepts.
. "$(dirname "$0")/lib.sh"
manual=$SOURCE_ROOT/docs/subutai.1

subutai --version
check "--version" matches "$out" '^subutai [0-9]+\.[0-9]+'
subutai --help
check "--help" is "$status" 0
help=$out
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p' <<<"$out")
check "there are sixteen commands" is "$(wc -w <<<"$commands")" 16
engines=$("$SUBUTAI" engines --json | jq -r .engine)
for engine in $engines; do
    check "--help names engine $engine" matches "$help" $'\n'"  $engine "
    check "the manual names engine $engine" grep -q "^.Cm $engine" "$manual"
done
subutai engines --json
check "engines --json: one is the default" json 'length >= 3 and (map(select(.default)) | length == 1)'
check "with the options that it alone reads" json 'map({(.engine): [.options[].option]}) | add | .glibc == [] and
    .direct == ["wait", "delegate", "servers"] and (.ni | length == 16 and index("mesh") == 0 and index("stats-file") == 15)'
check "and their defaults" json '.[] | select(.engine == "ni").options | map({(.option): .default}) | add |
    .mesh == "8x8" and ."queue-elements" == "122" and ."stats-file" == null'
# Of each: the default as the manual and --help have it, and as engines lists it.
subutai engines
listed=$out
help=$("$SUBUTAI" run --help | tr -s ' \n' ' ')
while IFS=$'\t' read -r name variable default description; do
    check "engines lists $name=$default" matches $'\n'"$listed" $'\n'"  $name=${default#-} +[a-z]"
    block=$(sed -n "/^\.It .*Fl -$name /,/^\.[IE][tl]/p" "$manual")
    check "the manual has the variable of $name" matches "$block" "Ev ${variable} [;.:]"
    if [[ $default != - ]]; then
        check "the manual has the default of $name" \
            matches "$block" "default ${default}[., ]|$default"$'\n'"\(the default\)"
        check "--help has the default of $name" \
            matches "$help" "--${name}[^;]*; [^[]*default ${default}[^[]*\[${variable}\]"
    fi
    check "--help describes $name" matches "$help" "--${name}[^ ]* [^-]*${description:0:40}"
done < <("$SUBUTAI" engines --json | jq -r '.options[] | [.option, .variable, .default // "-", .description] | @tsv')

for name in $commands; do
    subutai "$name" --help
    check "$name --help" matches "$out" "^Usage: subutai $name "
    own=$out
    subutai help "$name"
    check "help $name is the same" is "$out" "$own"
    for option in $(sed -nE 's/^  (-., )?--([a-z-]+).*/\2/p' <<<"$own"); do
        check "$name --$option is in the manual" grep -qE "Fl -$option( |\$)" "$manual"
        [[ $option != help ]] || continue
        # Accepted, whatever becomes of its value: never an unknown option.
        subutai "$name" "--$option" 1 no-such-program
        check "$name accepts --$option" is "$(grep -c 'unknown option' <<<"$err")" 0
    done
done
for option in $(sed -nE 's/^\.It .*Fl -([a-z-]+).*/\1/p' "$manual" | sort -u); do
    check "--$option of the manual exists" grep -qE "^  (-., )?--$option( |\[|\$)" <(for name in $commands; do
        "$SUBUTAI" "$name" --help
    done)
done

if command -v mandoc >/dev/null; then
    # Cross-references are looked up in the manuals of the machine, which may have none.
    run mandoc -T lint -W style "$manual"
    check "mandoc has nothing to say" is "$(grep -v 'referenced manual not found' <<<"$out")" ""
else
    skip "mandoc has nothing to say" "not installed"
fi
if command -v groff >/dev/null; then
    run groff -mandoc -ww -z -T utf8 "$manual"
    check "groff has nothing to say" is "$out$err" ""
else
    skip "groff has nothing to say" "not installed"
fi

# Completion: sourced into this shell, called as bash would.
. "$SOURCE_ROOT/tools/preload/completion.bash"
complete_words() {
    COMP_WORDS=("$SUBUTAI" "$@")
    COMP_CWORD=$#
    _subutai "$SUBUTAI"
    out=$(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ') status=0 err=''
}
complete_words ''
# shellcheck disable=SC2086 # a list of words
check "completes the commands" is "$out" "$(printf '%s\n' --help --version $commands | sort | tr '\n' ' ')"
complete_words co
check "completes a command" is "$out" "compare "
complete_words calibrate --fo
check "completes an option of calibrate" is "$out" "--force "
: >host.costs
complete_words calibrate -o host.c
check "completes where to write costs" is "$out" "host.costs "
complete_words run --engine ''
check "completes engines" is "$out" "$(sort <<<"$engines" | tr '\n' ' ')"
complete_words run --engine = di
check "completes --engine=di" is "$out" "direct "
complete_words compare --engines glibc,na
check "completes the last of a list" is "$out" "glibc,native "
complete_words compare --ru
check "completes an option" is "$out" "--runs "
complete_words run --no
check "completes a negated option" is "$out" "--no-children --no-record-stacks --no-schedule-times --no-serial --no-sfs --no-soft-barriers --no-strict-paper --no-sts "
complete_words run --sta
check "completes an option that may stand alone" is "$out" "--stall --stats --stats-file "
complete_words run --stats = ''
check "completes its values" is "$out" "json off text "
complete_words run --queue-full ''
check "completes the values of an option" is "$out" "again hold "
complete_words run --map r
check "completes a map" is "$out" "random "
complete_words run --mesh ''
check "offers nothing for a mesh" is "$out" " "
: >tiles.txt
complete_words run --stats-file tiles.t
check "completes a file" is "$out" "tiles.txt "
complete_words predict --sched ''
check "completes policies" is "$out" "csa oat rr "
complete_words predict --sync software,s
check "completes the last of a list of machines" is "$out" "software,software software,subutai "
complete_words predict --order ''
check "completes orders" is "$out" "free recorded "
complete_words predict tiles.t
check "completes a trace" is "$out" "tiles.txt "
complete_words predict --timeline tiles.t
check "completes a time line" is "$out" "tiles.txt "
# As bash splits it.
complete_words compare --engines glibc,ni : servi
check "completes a setting by its last part" is "$out" "service= "
complete_words compare --engines ni : service = inline,ni-
check "completes a setting after another" is "$out" "inline,ni-service= inline,ni-threads= "
complete_words compare --engines ni : service = ''
check "completes a setting's values" is "$out" "dedicated inline "
complete_words bench --engines = ni : queue-full = a
check "also after --engines=" is "$out" "again "
complete_words compare --engines ni : service = inline,scale = 0,di
check "completes an engine after settings" is "$out" "0,direct "
complete_words compare --engines ni:service=inline,scal
check "completes a list that is in one piece" is "$out" "ni:service=inline,scale= "
complete_words trace ''
check "completes the actions of trace" is "$out" "dump info to-perfetto "
complete_words trace info tiles.t
check "completes a trace" is "$out" "tiles.txt "
complete_words record -o tiles.t
check "completes where to record" is "$out" "tiles.txt "
complete_words record -o app.sbt ls
check "completes a program after -o FILE" matches "$out" '(^| )ls '
complete_words bench turn
check "completes a kind" is "$out" "turn-ring "
complete_words bench --threads ''
check "offers nothing for a number" is "$out" " "
complete_words run --engine direct ls
check "completes a program after the options" matches "$out" '(^| )ls '
complete_words run --no-children -- ls
check "completes a program after --" matches "$out" '(^| )ls '
complete_words run --stats ls
check "completes a program after --stats" matches "$out" '(^| )ls '
complete_words run --stats = json --mesh 4x4 ls
check "completes a program after --stats=json" matches "$out" '(^| )ls '
complete_words compare --engines ni : service = inline,scale = 0,ni : mesh = 4x4 ls
check "completes a program after a list of engines" matches "$out" '(^| )ls '
complete_words compare -n 2,4 ls
check "knows that -n takes a value" matches "$out" '(^| )ls '

# Installation into a staging directory: the parts find each other there.
prefix=$(meson introspect "$BUILD_ROOT" --buildoptions | jq -r '.[] | select(.name == "prefix").value')
DESTDIR=$scratch/stage run meson install -C "$BUILD_ROOT" --no-rebuild --quiet
check "installs" is "$status" 0
stage=$scratch/stage$prefix
installed=$stage/bin/subutai
check "the manual" test -s "$stage/share/man/man1/subutai.1"
check "the completion" test -s "$stage/share/bash-completion/completions/subutai"
check "subutai-bench" test -x "$(find "$stage/libexec" -name subutai-bench)"
pc=$(find "$stage" -name subutai.pc)
run env PKG_CONFIG_PATH="$(dirname "$pc")" PKG_CONFIG_SYSROOT_DIR= pkg-config --variable=preload subutai
check "pkg-config knows the library" test -f "$scratch/stage$out"
library=$out
run "$installed" run -- sh -c 'echo $LD_PRELOAD'
check "the installed command preloads the installed library" is "$out" "$scratch/stage$library"
check "the costs of the reference machine" cmp "$stage/share/subutai/reference.costs" "$SOURCE_ROOT/sim/reference.costs"
check "subutai-calibrate" test -x "$(find "$stage/libexec" -name subutai-calibrate)"
run "$installed" bench --list
check "and finds its bench program" matches "$out" barrier
mv "$stage" "$scratch/moved"
run "$scratch/moved/bin/subutai" run -- sh -c 'echo $LD_PRELOAD'
check "also after a move" is "$out" "$scratch/moved${library#"$prefix"}"

run "$SOURCE_ROOT/tools/deps"
check "tools/deps without a group: exit 2" is "$status" 2
run "$SOURCE_ROOT/tools/deps" build fly
check "tools/deps with an unknown group: exit 2" matches "$status $err" "^2 .*unknown group 'fly'"
finish
