package guard

import "testing"

func TestEveryRuleIsExplainedAndHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for g, r := range Rules {
		if r.Name == "" || r.Source == "" || r.Harm == "" {
			t.Errorf("guard %d: %+v says too little", g, r)
		}
		if seen[r.Name] {
			t.Errorf("the name %s is used twice", r.Name)
		}
		seen[r.Name] = true
		if got, ok := Parse(r.Name); !ok || got != Guard(g) {
			t.Errorf("Parse(%s) = %d, %t; want %d", r.Name, got, ok, g)
		}
	}
	if _, ok := Parse("no such rule"); ok {
		t.Error("a name that no rule has was found")
	}
}
