# Completions of kubectl-informer for bash: source this.
#
# Bash splits words at = and : as well, which occur within arguments such as --sort-by=.spec.nodeName.
# Such words are joined again for the command, and of its answers bash gets what stands after the split.
_kubectl_informer() {
    local current=$2 rest=$COMP_LINE words=() word before i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        before=${rest%%[![:space:]]*}
        rest=${rest#"$before"}
        rest=${rest#"$word"}
        if ((i == COMP_CWORD)) && [[ $word != [=:]* ]]; then
            word=$current
        fi
        if ((i > 0)) && [[ -z $before && ($word == [=:]* || ${COMP_WORDS[i - 1]} == [=:]) ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
    done
    local last=${words[${#words[@]} - 1]}
    local skip=${last%"$current"}
    local IFS=$'\v'
    COMPREPLY=($(
        _CLAP_IFS=$IFS _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) _CLAP_COMPLETE_COMP_TYPE=$COMP_TYPE \
            KUBECTL_INFORMER_COMPLETE=bash COMPLETER -- "${words[@]}"
    )) || COMPREPLY=()
    COMPREPLY=("${COMPREPLY[@]#"$skip"}")
    # More is to be typed after these.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o nosort -F _kubectl_informer kubectl-informer 2>/dev/null ||
    complete -o bashdefault -F _kubectl_informer kubectl-informer
