# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion for subutai. Commands, options, engines and kinds are asked from the command itself when they are
# needed, so this file knows no name that could go out of date.
# shellcheck shell=bash disable=SC2207

# "--name METAVAR" of each option of a subcommand, one per line; no METAVAR where the next word is not the value.
_subutai_options() {
    "$1" "$2" --help 2>/dev/null |
        sed -nE 's/^  (-., )?(--[a-z-]+)(\[=[^]]*\])?( [A-Z0-9][A-Za-z0-9|]*)?( .*)?$/\2\4/p'
}

_subutai_engines() {
    "$1" engines 2>/dev/null | sed -n 's/^\([a-z][a-z]*\) .*/\1/p'
}

# What a refusal lists as legal for something unknown, as far as it is words.
_subutai_legal() {
    "$@" 2>&1 >/dev/null | sed -n "s/.*: unknown [a-z]* '[^']*' (legal: \(.*\))\$/\1/p" |
        tr -s ', ' '\n' | grep -x '[a-z0-9][a-z0-9-]*'
}

# Names of settings: whole, and the last part of those that alone end in it.
_subutai_settings() {
    _subutai_legal "$1" compare --engines direct:= |
        awk -F- '{ print $0 "="; if (NF > 1) n[$NF]++; whole[$0] }
            END { for (part in n) if (n[part] == 1 && !(part in whole)) print part "=" }'
}

# The last element of --engines' list: an engine, a setting of the engine before it, or that setting's value. Bash may
# have split the list at its colons and equals signs, so it is put together again; what is offered replaces the cursor's
# word alone, which keeps the part of it that is not completed.
_subutai_complete_engines() {
    local self=$1 cur=$2 i=$COMP_CWORD list='' last fragment head words setting
    while ((i > 1)) && [[ ${COMP_WORDS[i]} == [:=] || ${COMP_WORDS[i - 1]} == [:=] ]]; do
        i=$((i - 1))
    done
    for (( ; i <= COMP_CWORD; i++)); do
        list+=${COMP_WORDS[i]}
    done
    list=${list#--engines=}
    last=${list##*,}
    if [[ $last == *=* ]]; then
        fragment=${last#*=}
        setting=${last%%=*}
        words=$(_subutai_legal "$self" compare --engines "direct:${setting##*:}=")
    elif [[ $last == *:* ]]; then
        fragment=${last#*:}
        words=$(_subutai_settings "$self")
    else
        fragment=$last
        words=$(_subutai_engines "$self")$'\n'native
        [[ $list != *:* ]] || words+=$'\n'$(_subutai_settings "$self")
    fi
    head=${cur%"$fragment"}
    COMPREPLY=($(compgen -P "$head" -W "$words" -- "$fragment"))
    if [[ ${COMPREPLY[0]-} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
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
        fi
        if [[ ${COMP_WORDS[i + 1]} != "=" ]] && { [[ $word == -[noj] ]] || grep -q -e "^$word " <<<"$options"; }; then
            i=$((i + 1))
        fi
        i=$((i + 1))
        while ((i <= COMP_CWORD)) && [[ ${COMP_WORDS[i]} == [:=] ]]; do
            i=$((i + 2)) # bash splits at these
        done
    done
    ((i == COMP_CWORD)) && [[ ${COMP_WORDS[i]} != -* ]] && echo "$i"
}

_subutai() {
    local self=$1 cur=${COMP_WORDS[COMP_CWORD]} sub=${COMP_WORDS[1]} prev options at attached=no
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$("$self" --help 2>/dev/null |
            sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p') --help --version" -- "$cur"))
        return
    fi
    options=$(_subutai_options "$self" "$sub")

    if [[ $sub == run || $sub == record || $sub == profile || $sub == compare || $sub == check ]]; then
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

    # The option that the cursor's word is the value of, perhaps: bash splits values, too, at colons and equals signs.
    at=$COMP_CWORD
    while ((at > 1)) && [[ ${COMP_WORDS[at]} == [:=] || ${COMP_WORDS[at - 1]} == [:=] ]]; do
        at=$((at - 1))
    done
    if ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == --* ]]; then
        attached=yes prev=${COMP_WORDS[at]}
    else
        prev=${COMP_WORDS[at - 1]}
    fi
    if [[ $cur == [:=] ]]; then
        cur=
    fi
    case $prev in
    --engine)
        COMPREPLY=($(compgen -W "$(_subutai_engines "$self")" -- "$cur"))
        ;;
    --engines)
        _subutai_complete_engines "$self" "$cur"
        ;;
    --folded | --library | --output | --log | --requests | --schedule | --stats-file | --program | --record | --out | -o | --timeline | --app)
        COMPREPLY=($(compgen -f -- "$cur"))
        ;;
    --sync | --sched | --without)
        at=
        [[ $cur != *,* ]] || at=${cur%,*},
        COMPREPLY=($(compgen -P "$at" -W "$(_subutai_legal "$self" "$sub" "$prev=")" -- "${cur##*,}"))
        ;;
    --order | --machine)
        COMPREPLY=($(compgen -W "$(_subutai_legal "$self" "$sub" "$prev=")" -- "$cur"))
        ;;
    *)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "$(cut -d' ' -f1 <<<"$options")" -- "$cur"))
        elif [[ $attached == yes ]] || grep -q -e "^$prev " <<<"$options"; then
            COMPREPLY=($(compgen -W "$(_subutai_legal "$self" run "$prev=")" -- "$cur")) # none for a number
        elif [[ $prev == -n ]]; then
            return
        elif [[ $sub == trace || $sub == schedule ]] && ((COMP_CWORD == 2)); then
            COMPREPLY=($(compgen -W "$(_subutai_legal "$self" "$sub" '')" -- "$cur"))
        elif [[ $sub == trace || $sub == schedule ]]; then
            COMPREPLY=($(compgen -f -- "$cur"))
        elif [[ $sub == bench ]]; then
            COMPREPLY=($(compgen -W "$("$self" bench --list 2>/dev/null | cut -f1)" -- "$cur"))
        elif [[ $sub == predict || $sub == replay || $sub == report ]]; then
            COMPREPLY=($(compgen -f -- "$cur"))
        elif [[ $sub == doctor ]]; then
            COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
        fi
        ;;
    esac
}
complete -o filenames -o bashdefault -F _subutai subutai
