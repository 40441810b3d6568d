// Package machine tells what a benchmark ran on, and what processes used of it.
package machine
