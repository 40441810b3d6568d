#!/bin/bash
# demo.sh [down]   Tidemark's main job on a real Kubernetes, step by step; `down` removes what it left.
#   CONTEXT=name IMAGE=registry/tidemark:tag   uses a cluster of yours. kcat then runs in a pod (CLIENT_IMAGE, edenhill/kcat:1.7.1).
#   TEXT_LINES=100000   how many lines of text are written.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

TEXT_LINES=${TEXT_LINES:-100000}
CLIENT_IMAGE=${CLIENT_IMAGE:-edenhill/kcat:1.7.1}
RP=orders
NS=default
[ -z "$CONTEXT" ] || NS=tidemark-demo
BROKER=$RP.$NS.svc.cluster.local:9092
tmp=$(mktemp -d)
background=()
trap 'kill "${background[@]}" 2>/dev/null || true; rm -rf "$tmp"' EXIT

k() { kubectl -n "$NS" "$@"; }
show() { printf '           $ %s\n' "$*"; "$@" | sed 's/^/           /'; }
status() { k get rp $RP -o "jsonpath={.status.$1}"; }

# client CMD...   runs a Kafka client that can reach the pods: here with the cluster's DNS, or in a pod of your cluster
client() {
  if [ -z "$CONTEXT" ]; then "$LAB_SH" run "$@"; else kubectl -n "$NS" exec -i tidemark-demo-client -- "$@"; fi
}

prepare() {
  if [ -z "$CONTEXT" ]; then
    step "1. a Kubernetes of three nodes on this machine"
    need kcat:kcat
    hack/lab/build.sh
    hack/image.sh
    "$LAB_SH" up
    target_cluster
  else
    step "1. your cluster, context $CONTEXT"
    target_cluster
    image_ref >/dev/null
    kubectl create namespace "$NS" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
    k get pod tidemark-demo-client >/dev/null 2>&1 || k run tidemark-demo-client --image="$CLIENT_IMAGE" --restart=Never --command -- sleep 86400
    k wait --for=condition=Ready pod/tidemark-demo-client --timeout=180s >/dev/null || fail "no kcat pod; is $CLIENT_IMAGE pullable? CLIENT_IMAGE=… names another"
  fi
  show kubectl get nodes
}

install_and_apply() {
  step "2. the operator, by its Helm chart"
  hack/deploy.sh
  step "3. a ReplicatedPartition with three replicas: config/samples/replicatedpartition.yaml"
  k apply -f config/samples/replicatedpartition.yaml
  k wait --for=condition=Ready "rp/$RP" --timeout=180s >/dev/null || { k describe rp $RP; fail "$RP did not become ready; its conditions are above"; }
  k wait --for=condition=InSync "rp/$RP" --timeout=180s >/dev/null || { k describe rp $RP; fail "not all replicas of $RP came in sync"; }
  show kubectl -n "$NS" get rp $RP
}

# text   real text that every machine with Go has: the lines of Go's own sources, numbered
make_text() {
  find "$(go env GOROOT)/src" -name '*.go' -print0 | LC_ALL=C sort -z | xargs -0 cat 2>/dev/null |
    LC_ALL=C awk -v n="$TEXT_LINES" 'NR > n { exit } { print NR "\t" $0 }' >"$tmp/in" || true # cat is cut off, which is no failure
  [ "$(wc -l <"$tmp/in")" -ge "$TEXT_LINES" ] || fail "Go's sources have only $(wc -l <"$tmp/in") lines"
}

# feed   hands the text over at about 15,000 lines a second, so that there is a middle; says when that is reached
feed() {
  perl -e '$| = 1; my ($half, $mark) = @ARGV; open my $in, "<", "'"$tmp/in"'" or die; my $n = 0;
    while (<$in>) { print; $n++; select undef, undef, undef, 0.01 if $n % 150 == 0; if ($n == $half) { open my $m, ">", $mark or die } }' \
    $((TEXT_LINES / 2)) "$tmp/half"
}

# kill_leader NAME   prints when, in nanoseconds
kill_leader() {
  if [ -z "$CONTEXT" ]; then "$LAB_SH" kill-pod "$NS" "$1" replica; return; fi
  date +%s%N # from outside of a node, this is the nearest thing to kill -9
  k delete pod "$1" --grace-period=0 --force >/dev/null 2>&1
}

start_prober() {
  [ -z "$CONTEXT" ] || return 0
  go build -o dist/prober ./test/cmd/prober
  "$LAB_SH" run "$ROOT/dist/prober" -brokers "$BROKER" -topic $RP -since-file "$tmp/killed" >"$tmp/probe" 2>&1 &
  background+=($!)
  prober=$!
}

produce_and_kill() {
  local leader epoch producer
  start=$(client kcat -b "$BROKER" -Q -t "$RP:0:-1" | sed -E 's/.* offset //')
  step "4. kcat writes $TEXT_LINES lines of Go's sources with acks=all and an idempotent producer, from offset $start on"
  start_prober
  feed | client kcat -b "$BROKER" -P -t $RP -X acks=all -X enable.idempotence=true >"$tmp/kcat" 2>&1 &
  producer=$!
  background+=($producer)
  until [ -e "$tmp/half" ]; do kill -0 $producer 2>/dev/null || fail "kcat ended: $(cat "$tmp/kcat")"; sleep 0.05; done

  leader=$(status leader) epoch=$(status leaderEpoch)
  kill_leader "$leader" >"$tmp/killed.part"
  mv "$tmp/killed.part" "$tmp/killed"
  step "5. in the middle of it: kill -9 of the leader $leader, epoch $epoch"
  until [ "$(status leaderEpoch)" -gt "$epoch" ] && [ -n "$(status leader)" ]; do sleep 0.05; done
  step "   new leader: $(status leader), epoch $(status leaderEpoch)"

  wait $producer || fail "kcat failed: $(cat "$tmp/kcat")"
  step "   kcat has had an acknowledgement for every line"
  [ -z "$CONTEXT" ] || return 0
  kill -TERM "$prober"
  wait "$prober" || fail "the prober failed: $(cat "$tmp/probe")"
  sed 's/^/              a franz-go producer with a record every 5 ms: /' "$tmp/probe"
}

compare() {
  step "6. reading everything back with kcat"
  # the prober's records have a key, kcat's have none
  client kcat -b "$BROKER" -C -t $RP -o "$start" -e -q -f '%k\t%s\n' | sed -n 's/^\t//p' >"$tmp/out"
  if ! cmp "$tmp/in" "$tmp/out"; then
    diff "$tmp/in" "$tmp/out" | head -n 10
    fail "what was read is not what was written: $(wc -l <"$tmp/in") lines in, $(wc -l <"$tmp/out") lines out"
  fi
  step "   $(wc -l <"$tmp/out") lines, byte for byte what was written: same order, none lost, none doubled"
}

finish() {
  k wait --for=condition=InSync "rp/$RP" --timeout=120s >/dev/null || { k describe rp $RP; fail "the killed replica did not come back in sync"; }
  step "7. the killed replica is back in sync"
  show kubectl -n "$NS" get rp $RP -o wide
  show kubectl -n "$NS" describe rp $RP
  step "done. The cluster stays up; things to try:"
  [ -n "$CONTEXT" ] || printf '  %s\n' 'eval "$(hack/lab/cluster.sh env)"                     # kubectl and helm of this cluster'
  cat <<U
  kubectl -n $NS get rp,pods,pvc,lease,pdb -o wide
  kubectl -n $NS delete pod $(status leader)                    # a switchover; a producer notices nothing
U
  [ -n "$CONTEXT" ] || cat <<U
  hack/lab/cluster.sh run kcat -b $BROKER -t $RP -C -o -5 -e
  hack/lab/cluster.sh cut-node 2                            # a power cut; start-node 2 ends it
U
  echo "  make demo-down${CONTEXT:+ CONTEXT=$CONTEXT}                                            # remove everything"
}

down() {
  if [ -z "$CONTEXT" ]; then "$LAB_SH" down; return; fi
  target_cluster
  k delete rp $RP --ignore-not-found --timeout=90s
  kubectl delete namespace "$NS" --ignore-not-found --timeout=120s
  helm uninstall tidemark --namespace "$NAMESPACE" --ignore-not-found
  step "removed. The CRD stays, with every other partition: kubectl delete crd replicatedpartitions.tidemark.io"
}

if [ "${1:-}" = down ]; then down; exit; fi
prepare
install_and_apply
make_text
produce_and_kill
compare
finish
