//go:build !linux

package volume

import "errors"

var errNoWitness = errors.New("witnesses need Linux")

func onTmpfs(string) error { return errNoWitness }

func mapFile(string, int) ([]byte, error) { return nil, errNoWitness }

func createMapped(string, int, func([]byte)) ([]byte, error) { return nil, errNoWitness }

func unmap([]byte) error { return nil }
