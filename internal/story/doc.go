// Package story plays stories: text files in which a partition's replicas are led
// through one history step by step, with what every step printed written below it.
//
// A story drives the replication core and the rules of the record that ship; around
// them are logs in memory, a record that is swapped by version as in the API server,
// and a network in which a message moves only when the story says so. Nothing happens
// by chance and no time passes but by the command "after", so a story is the same in
// every run, and its printed steps are its test: [Run] plays a file and returns it
// with fresh output, which must be what stands in the file already.
//
// [Story.Frames] holds the same history for pictures: after each command the state of
// every replica, and the messages, crashes, elections, cuts and acknowledgements in
// between. Package picture draws them.
//
// Stories that take a safety rule away (command "off") show the harm that the rule
// prevents. They need a build with the tag mutants; without it [Run] answers
// [ErrNeedsMutants]. Rules are taken away for the whole process while such a story
// runs: stories must not be played at the same time then.
//
// The commands are listed in [Commands] and explained, with examples, in
// pkg/replica/core/testdata/README.md. Start reading at run.go; commands.go maps the
// words to what they do.
package story
