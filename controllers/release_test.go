package controllers

import (
	"net/http"
	"testing"
)

// The volume of a replica that is scaled away goes with it, if the user asked for that, also
// if its claim could not be marked as released at once.
func TestAReplicaIsNotDroppedBeforeItsVolumeIsReleased(t *testing.T) {
	b := needsBareCluster(t)
	for _, s := range scenarios {
		if s.name != "scale-down-delete" {
			continue
		}
		writes, end := s.run(t, b)
		for n := 1; n <= writes; n++ {
			s.trial(t, b, n, variant{"refused", func(n int) (meddling, *crashed) { return once(n, false, http.StatusInternalServerError) }}, end)
			s.trial(t, b, n, answerLost, end)
		}
	}
}
