#!/bin/bash
# Apache Kafka itself, for tests and benchmarks, at the version of hack/kafka/pom.xml.
#
#   kafka.sh jars                 brings the jars, once, and prints their directory. Status 3: they could not be had
#   kafka.sh try                  the same, but prints why where they could not be had, with status 0
#   kafka.sh class NAME ARG...    runs a class of them, such as org.apache.kafka.tools.DumpLogSegments
#   kafka.sh broker DIR ID PORTS [KEY=VALUE]...
#                                 runs broker ID (from 1 on) until it is signalled, with its data in DIR/ID.
#                                 PORTS names every broker of the cluster, "CLIENTS:CONTROLLER …", as in
#                                 "9092:9093 9192:9193 9292:9293"; the last arguments are added to its properties.
#   kafka.sh up DIR PORTS [KEY=VALUE]...     starts all brokers of a cluster, and waits until they answer
#   kafka.sh down DIR                        stops them; the data stay
set -euo pipefail
. "$(dirname "$0")/lib.sh"

POM=$ROOT/hack/kafka/pom.xml
VERSION=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$POM")
# By content: what the pom names is what is there.
JARS=${TOOLS_CACHE:-${HOME:?set HOME or TOOLS_CACHE}/.cache/tidemark-tools}/kafka-$VERSION-$(cksum <"$POM" | cut -d' ' -f1)
CLUSTER=dGlkZW1hcmsta2Fma2EtMQ # any id of 16 bytes
HEAP=${KAFKA_HEAP:-512m}

unreachable() { printf 'Apache Kafka %s is not here, and %s\n' "$VERSION" "$*" >&2; exit 3; }

jars() {
  [ ! -d "$JARS" ] || return 0
  "$ROOT/hack/need.sh" java:default-jre-headless mvn:maven >&2 || unreachable "java and maven are missing and could not be installed"
  step "bringing the jars of Apache Kafka $VERSION: 55 MB, only once" >&2
  local tmp log
  mkdir -p "${JARS%/*}"
  tmp=$(mktemp -d "$JARS.XXXXXX") log=$(mktemp)
  # shellcheck disable=SC2064 # the names of now
  trap "rm -rf '$tmp' '$log'" EXIT
  timeout 600 mvn -B -q -f "$POM" -Dmaven.wagon.http.connectionTimeout=15000 -Dmaven.wagon.rto=60000 \
    dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$tmp" >"$log" 2>&1 ||
    unreachable "Maven Central did not give it: $(grep -m 1 ERROR "$log" | cut -c 1-300 || echo "mvn ended with an error")"
  mv -T "$tmp" "$JARS" 2>/dev/null || [ -d "$JARS" ] # another process may have been faster
}

try() {
  local err
  err=$(mktemp)
  if (jars) 2>"$err"; then echo "$JARS"; else tail -n 1 "$err"; fi
  rm -f "$err"
}

# class NAME ARG...   in place of this process, so that signals reach it
class() { exec java -Xmx"$HEAP" ${KAFKA_JVM:--XX:TieredStopAtLevel=1} -cp "$JARS/*" "$@"; }

# properties DIR ID PORTS KEY=VALUE...   what a broker needs, for clusters that are thrown away
properties() {
  local dir=$1 id=$2 ports=($3) voters=() i clients controller; shift 3
  for i in "${!ports[@]}"; do voters+=("$((i + 1))@127.0.0.1:${ports[$i]#*:}"); done
  clients=${ports[$((id - 1))]%:*} controller=${ports[$((id - 1))]#*:}
  cat <<EOF
process.roles=broker,controller
node.id=$id
controller.quorum.voters=$(IFS=,; echo "${voters[*]}")
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$clients,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$clients
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=$dir/$id
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
EOF
  printf '%s\n' "$@"
}

broker() { # DIR ID PORTS KEY=VALUE...
  local dir=$1 id=$2
  mkdir -p "$dir"
  properties "$@" >"$dir/$id.properties"
  [ -e "$dir/$id/meta.properties" ] || (class kafka.tools.StorageTool format -t "$CLUSTER" -c "$dir/$id.properties") >/dev/null
  class kafka.Kafka "$dir/$id.properties"
}

up() { # DIR PORTS KEY=VALUE...
  local dir=$1 ports=($2) i p; shift 2
  mkdir -p "$dir"
  for i in "${!ports[@]}"; do
    setsid "$0" broker "$dir" $((i + 1)) "${ports[*]}" "$@" >"$dir/$((i + 1)).log" 2>&1 </dev/null &
    echo $! >"$dir/$((i + 1)).pid"
  done
  for i in "${!ports[@]}"; do
    p=$(cat "$dir/$((i + 1)).pid")
    until (: </dev/tcp/127.0.0.1/"${ports[$i]%:*}") 2>/dev/null; do
      kill -0 "$p" 2>/dev/null || fail "broker $((i + 1)) has ended: $(tail -n 1 "$dir/$((i + 1)).log")"
      sleep 0.2
    done
  done
  step "${#ports[@]} brokers are up"
}

down() { # DIR
  local f p
  for f in "$1"/*.pid; do
    p=$(cat "$f" 2>/dev/null) || continue
    # Its command line names the directory, so a pid that something else has by now is never taken for it.
    case $({ tr '\0' ' ' <"/proc/$p/cmdline"; } 2>/dev/null) in *"$1/"*) kill "$p" ;; esac
    while kill -0 "$p" 2>/dev/null; do sleep 0.1; done
    rm -f "$f"
  done
}

case ${1:-} in
jars) jars; echo "$JARS" ;;
try) try ;;
class | broker | up) jars; "$@" ;;
down) shift; down "$@" ;;
*) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
