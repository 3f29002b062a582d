#!/usr/bin/env bash
# Makes the built-in base again: vocabulary, pre-training, instruction tuning. About 40 minutes on two quiet cores with bf16.
#
#   [MOLLY_TOKENS=N] tools/nano/build.sh TEXTS INSTRUCT OUT
#
# TEXTS holds it.NAME.txt and en.NAME.txt (docs/molly-nano.md says where each comes from), INSTRUCT is the mixed set
# that tools/specialists/make.py writes. OUT/tuned/model-q8_0.gguf is models/molly-nano.gguf. A run that was stopped goes on
# with `molly train resume OUT/run` or OUT/tuned.
set -euo pipefail
texts=$1 instruct=$2 out=$3
molly=${MOLLY:-build/release/molly}
it=$texts/it en=$texts/en
mkdir -p "$out"

[[ -f $out/tokenizer.gguf ]] || "$molly" train tokenizer \
    "$it.libreoffice-help.txt" "$it.common-voice.txt" "$it.pa-anpr.txt" "$it.pa-design-linee-guida.txt" \
    "$it.pa-pianotriennale-ict-doc.txt" "$it.pa-riuso-software-per-pa.txt" "$it.pa-spid-cie-oidc.txt" \
    "$it.eltec-novels.txt" "$it.wikinews.txt" \
    "$en.libreoffice-help.txt" "$en.common-voice.txt" "$en.eltec-novels.txt" \
    --vocabulary 8192 --out "$out/tokenizer.gguf"

[[ -f $out/run/report.json ]] || "$molly" train base --preset nano-6m --tokens "${MOLLY_TOKENS:-22000000}" --seed 1 --learning-rate 2e-3 \
    --name molly-nano --license Apache-2.0 \
    --text "$it.eltec-novels.txt=0.6" --text "$it.libreoffice-help.txt=2" --text "$it.common-voice.txt=3" \
    --text "$it.wikinews.txt=3" --text "$it.pa-anpr.txt=2" --text "$it.pa-design-linee-guida.txt=2" \
    --text "$it.pa-pianotriennale-ict-doc.txt=2" --text "$it.pa-riuso-software-per-pa.txt=2" \
    --text "$it.pa-spid-cie-oidc.txt=2" \
    --text "$en.libreoffice-help.txt=1.5" --text "$en.common-voice.txt=1.5" --text "$en.eltec-novels.txt=0.4" \
    --tokenizer "$out/tokenizer.gguf" --out "$out/run"

[[ -f $out/tuned/report.json ]] || "$molly" train full --base "$out/run/model-f16.gguf" --data "$instruct" \
    --name molly-nano --license Apache-2.0 --epochs 4 --learning-rate 1e-3 --patience 0 --out "$out/tuned"
echo "$out/tuned/model-q8_0.gguf"
