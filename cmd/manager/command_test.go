package main

import (
	"strings"
	"testing"
)

func TestFlagsAreRefusedWithTheirName(t *testing.T) {
	for _, tc := range []struct{ name, flag, want string }{
		{"pull policy", "--replica-image-pull-policy=Sometimes", "--replica-image-pull-policy"},
		{"log level", "--log-level=loud", "--log-level"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := command()
			cmd.SetArgs([]string{tc.flag})
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that names %s", err, tc.want)
			}
		})
	}
}
