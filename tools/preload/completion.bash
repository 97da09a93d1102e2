# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion for subutai. Commands, options, engines and kinds are asked from the command itself when they are
# needed, so this file knows no name that could go out of date.
# shellcheck shell=bash disable=SC2207

# "--name METAVAR" of each option of a subcommand, one per line.
_subutai_options() {
    "$1" "$2" --help 2>/dev/null | sed -nE 's/^  (-., )?(--[a-z-]+)( [A-Z0-9|]+)?( .*)?$/\2\3/p'
}

_subutai_engines() {
    "$1" engines 2>/dev/null | cut -d' ' -f1
}

# Prints the index of the first word of the program's command line, nothing if the cursor is before it.
_subutai_command_at() {
    local options=$1 i=2 word
    while ((i < COMP_CWORD)); do
        word=${COMP_WORDS[i]}
        if [[ $word == -- ]]; then
            echo $((i + 1))
            return
        elif [[ $word != -* ]]; then
            echo "$i"
            return
        elif [[ ${COMP_WORDS[i + 1]} == "=" ]]; then
            i=$((i + 3)) # bash splits --name=value at the sign
        elif [[ $word == -n ]] || grep -q "^$word " <<<"$options"; then
            i=$((i + 2))
        else
            i=$((i + 1))
        fi
    done
    ((i == COMP_CWORD)) && [[ ${COMP_WORDS[i]} != -* ]] && echo "$i"
}

_subutai() {
    local self=$1 cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} sub=${COMP_WORDS[1]} options at head
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$("$self" --help 2>/dev/null |
            sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p') --help --version" -- "$cur"))
        return
    fi
    options=$(_subutai_options "$self" "$sub")

    if [[ $sub == run || $sub == compare ]]; then
        at=$(_subutai_command_at "$options")
        if [[ -n $at ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset "$at"
            elif ((at == COMP_CWORD)); then
                COMPREPLY=($(compgen -c -- "$cur"))
            else
                COMPREPLY=($(compgen -f -- "$cur"))
            fi
            return
        fi
    fi

    if [[ $cur == "=" ]]; then
        cur=
    elif [[ $prev == "=" ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $prev in
    --engine)
        COMPREPLY=($(compgen -W "$(_subutai_engines "$self")" -- "$cur"))
        ;;
    --engines)
        # a list: the last element is completed
        head=${cur%"${cur##*,}"}
        COMPREPLY=($(compgen -P "$head" -W "$(_subutai_engines "$self") native" -- "${cur##*,}"))
        ;;
    --library | --output | --log | --program)
        COMPREPLY=($(compgen -f -- "$cur"))
        ;;
    *)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "$(cut -d' ' -f1 <<<"$options")" -- "$cur"))
        elif [[ $prev != -n ]] && grep -q "^$prev " <<<"$options"; then
            return # a number: nothing to offer
        elif [[ $sub == bench ]]; then
            COMPREPLY=($(compgen -W "$("$self" bench --list 2>/dev/null | cut -f1)" -- "$cur"))
        elif [[ $sub == doctor ]]; then
            COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
        fi
        ;;
    esac
}
complete -o filenames -o bashdefault -F _subutai subutai
