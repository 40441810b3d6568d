package incluster

import (
	"testing"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

// H90: "host:port" without brackets cannot be listened on; without a host all addresses are, of
// both families.
func TestAddressesToListenOn(t *testing.T) {
	for host, want := range map[string]string{"": ":9092", "10.0.0.1": "10.0.0.1:9092", "fd00::1": "[fd00::1]:9092"} {
		if got := (Options{ListenHost: host}).listen(9092); got != want {
			t.Errorf("host %q: listens on %s, want %s", host, got, want)
		}
	}
}

func TestListenersHaveTheAddressesOfTheStatus(t *testing.T) {
	p := &v1alpha1.ReplicatedPartition{}
	p.Spec.Listeners = []v1alpha1.ListenerSpec{{Name: "a", Port: 9094}, {Name: "b", Port: 9095}}
	p.Status.Listeners = []v1alpha1.ListenerStatus{
		{Name: "gone", Replicas: []v1alpha1.ListenerAddress{{ID: 0, Host: "x", Port: 1}}},
		{Name: "b", Replicas: []v1alpha1.ListenerAddress{{ID: 2, Host: "2001:db8::1", Port: 31000}}},
	}
	got := Options{ListenHost: "fd00::1"}.listeners(p)
	if len(got) != 2 || got[0].Name != "a" || got[0].Listen != "[fd00::1]:9094" || len(got[0].Advertised) != 0 {
		t.Fatalf("got %+v", got)
	}
	if b := got[1]; b.Listen != "[fd00::1]:9095" || len(b.Advertised) != 1 || b.Advertised[2] != (kafka.Endpoint{Host: "2001:db8::1", Port: 31000}) {
		t.Errorf("got %+v", b)
	}
}
