// Package nemesis draws what goes wrong in a run of real processes, and keeps the
// account of what may go wrong at once. It does nothing itself and needs no clock:
// the tests of package processes carry the faults out.
//
// A [Round] is one partition's life: its shape and its faults follow from a seed
// alone. Each round knows only some kinds of faults, so that some rounds dwell on
// pauses and others on lost volumes. Which replica leads when a fault strikes does not
// follow from the seed, so that a run with the same seed is alike and not the same.
//
// [Losses] keeps the promise's other half. Tidemark loses nothing while fewer than min
// ISR in-sync replicas lose what they hold; a test that destroyed more would find a
// loss that was never ruled out.
package nemesis
