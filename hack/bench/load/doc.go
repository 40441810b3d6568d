// Package load drives producers in a closed loop, which finds the highest rate, and in
// an open loop, which finds the latency at a given rate.
//
// It knows no protocol: what it drives is a [Producer].
package load
