// Package plugin is `kubectl tidemark`: what a person asks about partitions, and the few
// things that are easier said than written into annotations.
//
// It owns no state and no rule: what it shows comes from the API server and from the
// replicas themselves, and what it asks for is decided by operator and replicas. It never
// reads a Secret, and it changes nothing but one annotation, for promote.
//
// What holds:
//
//   - An unknown number is shown as "?", never as 0.
//   - Errors are one line that says what to do, and the exit status is 1.
//   - Replicas are reached through the API server alone (package forward).
//   - What is made of an object, the table, the text of a record, the redacted copy, is made
//     by a pure function, which the golden files in testdata show.
//
// Start reading at command.go; each subcommand has a file of its name.
package plugin
