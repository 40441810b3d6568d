// Package documents holds the pages against the tree: the tests that they name exist, and
// their links lead somewhere.
package documents
