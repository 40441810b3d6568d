// Package prober watches a topic from a client's side: it writes a small
// record every few milliseconds with acks=all and an idempotent producer, and
// knows afterwards when nothing was acknowledged, and for how long.
//
// It is an ordinary franz-go client, set to be impatient: with a client's
// usual timeouts of many seconds one would measure those, and not the cluster.
// Only timeouts and back-offs differ from the defaults, never a guarantee.
//
// [Start] begins, [Prober.Stop] ends; [Prober.Longest] tells the longest time
// without an acknowledgement since some moment. With a weaker [history.Promise] it is a
// plain producer, or one that asks for less. [ReadAll] reads a topic from its start to
// its end for [history.Log.Judge]; a [Reader], or [Follow], reads along meanwhile.
package prober
