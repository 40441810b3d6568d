package v1alpha1

import "testing"

func TestRecoverRequest(t *testing.T) {
	for _, tc := range []struct {
		text    string
		want    int64
		ok, bad bool
	}{
		{"90", 90, true, false},
		{"0", 0, false, true},
		{"-1", 0, false, true},
		{"yes", 0, false, true},
		{"", 0, false, true},
	} {
		p := &ReplicatedPartition{}
		p.Annotations = map[string]string{AnnotationRecover: tc.text}
		got, ok, err := p.RecoverRequest()
		if got != tc.want || ok != tc.ok || (err != nil) != tc.bad {
			t.Errorf("%q: got %d, %t, %v; want %d, %t, error %t", tc.text, got, ok, err, tc.want, tc.ok, tc.bad)
		}
	}
	if _, ok, err := (&ReplicatedPartition{}).RecoverRequest(); ok || err != nil {
		t.Errorf("no annotation: got %t, %v", ok, err)
	}
}

func TestUncleanElectionRequest(t *testing.T) {
	for _, tc := range []struct {
		text    string
		want    UncleanElectionRequest
		ok, bad bool
	}{
		{"7", UncleanElectionRequest{7, -1}, true, false},
		{"7/2", UncleanElectionRequest{7, 2}, true, false},
		{"7/", UncleanElectionRequest{}, false, true},
		{"7/-1", UncleanElectionRequest{}, false, true},
		{"-7", UncleanElectionRequest{}, false, true},
		{"7/2/1", UncleanElectionRequest{}, false, true},
		{"true", UncleanElectionRequest{}, false, true},
		{"99999999999", UncleanElectionRequest{}, false, true},
	} {
		p := &ReplicatedPartition{}
		p.Annotations = map[string]string{AnnotationElectUnclean: tc.text}
		got, ok, err := p.UncleanElectionRequest()
		if got != tc.want || ok != tc.ok || (err != nil) != tc.bad {
			t.Errorf("%q: got %+v, %t, %v; want %+v, %t, error %t", tc.text, got, ok, err, tc.want, tc.ok, tc.bad)
		}
	}
	for _, tc := range []struct {
		text string
		want PromoteRequest
		ok   bool
	}{
		{"7/2", PromoteRequest{7, 2}, true}, {"0/0", PromoteRequest{0, 0}, true},
		{"7", PromoteRequest{}, false}, {"7/-1", PromoteRequest{}, false}, {"", PromoteRequest{}, false}, {"/2", PromoteRequest{}, false}, {"orders-2", PromoteRequest{}, false},
	} {
		p := &ReplicatedPartition{}
		p.Annotations = map[string]string{AnnotationPromote: tc.text}
		if got, ok, err := p.PromoteRequest(); got != tc.want || ok != tc.ok || (err == nil) != tc.ok {
			t.Errorf("%q: got %+v, %t, %v; want %+v, %t", tc.text, got, ok, err, tc.want, tc.ok)
		}
	}
	if _, ok, err := (&ReplicatedPartition{}).UncleanElectionRequest(); ok || err != nil {
		t.Errorf("no annotation: got %t, %v", ok, err)
	}
}
