package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// listening is a world whose partition has these listeners, with Services as the API server
// has made them, and every replica on a node of its own.
func listening(listeners ...v1alpha1.ListenerSpec) *Observation {
	o := world()
	o.Partition.Spec.Listeners = listeners
	o.render()
	o.Children = nil
	port := int32(30000)
	for _, c := range o.Desired.Children {
		live := c.DeepCopyObject().(client.Object)
		if s, ok := live.(*corev1.Service); ok && s.Labels[v1alpha1.LabelListener] != "" {
			if s.Spec.Ports[0].NodePort == 0 {
				s.Spec.Ports[0].NodePort = port
			}
			port++
			if len(s.Spec.IPFamilies) == 0 {
				s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
			}
		}
		o.Children = append(o.Children, live)
	}
	o.NodeAddresses = map[string][]corev1.NodeAddress{}
	for id, pod := range o.Pods {
		pod.Spec.NodeName = fmt.Sprintf("node-%d", id)
		pod.Status.HostIP = fmt.Sprintf("10.9.0.%d", id)
		pod.Status.HostIPs = []corev1.HostIP{{IP: pod.Status.HostIP}, {IP: fmt.Sprintf("fd00:9::%d", id)}}
		o.NodeAddresses[pod.Spec.NodeName] = []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: pod.Spec.NodeName}, {Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", id)}, {Type: corev1.NodeInternalIP, Address: fmt.Sprintf("fd00::%d", id)}}
	}
	return o
}

func (o *Observation) mustService(name string) *corev1.Service {
	s := o.service(name)
	if s == nil {
		panic("no Service " + name)
	}
	return s
}

// tellListeners is what clients are told, in a line.
func tellListeners(all []v1alpha1.ListenerStatus) string {
	var parts []string
	for _, l := range all {
		text := l.Name + " " + l.BootstrapServers
		for _, a := range l.Replicas {
			text += fmt.Sprintf(" %d=%s", a.ID, addressText(a))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func nodePorts() v1alpha1.ListenerSpec {
	return v1alpha1.ListenerSpec{Name: "external", Type: v1alpha1.ListenerNodePort, Port: 9094}
}

func balancers() v1alpha1.ListenerSpec {
	return v1alpha1.ListenerSpec{Name: "lb", Type: v1alpha1.ListenerLoadBalancer, Port: 9095}
}

func ingress(hosts ...string) (all []corev1.LoadBalancerIngress) {
	for _, h := range hosts {
		if strings.ContainsAny(h, ":") || h[0] < 'a' {
			all = append(all, corev1.LoadBalancerIngress{IP: h})
		} else {
			all = append(all, corev1.LoadBalancerIngress{Hostname: h})
		}
	}
	return all
}

func TestAddressesThatClientsOutsideAreTold(t *testing.T) {
	const complete = v1alpha1.ReasonComplete
	for _, tc := range []struct {
		name           string
		listener       v1alpha1.ListenerSpec
		change         func(*Observation)
		want           string
		reason, saying string
	}{
		{"the nodes' own", nodePorts(), nil,
			"external 10.0.0.0:30000,10.0.0.1:30000,10.0.0.2:30000 0=10.0.0.0:30001 1=10.0.0.1:30002 2=10.0.0.2:30003", complete, ""},
		{"the nodes' outer one", nodePorts(), func(o *Observation) {
			o.NodeAddresses["node-1"] = append(o.NodeAddresses["node-1"], corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "192.0.2.1"})
		}, "external 10.0.0.0:30000,10.0.0.2:30000,192.0.2.1:30000 0=10.0.0.0:30001 1=192.0.2.1:30002 2=10.0.0.2:30003", complete, ""},
		{"IPv6, since the Services have nothing else", nodePorts(), func(o *Observation) {
			for _, c := range o.Children {
				if s, ok := c.(*corev1.Service); ok {
					s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
				}
			}
		}, "external [fd00::1]:30000,[fd00::2]:30000,[fd00::]:30000 0=[fd00::]:30001 1=[fd00::1]:30002 2=[fd00::2]:30003", complete, ""},
		{"what the kubelet says, where nodes may not be read", nodePorts(), func(o *Observation) { o.NodeAddresses = nil },
			"external 10.9.0.0:30000,10.9.0.1:30000,10.9.0.2:30000 0=10.9.0.0:30001 1=10.9.0.1:30002 2=10.9.0.2:30003", complete, ""},
		{"the user's", v1alpha1.ListenerSpec{Name: "external", Type: v1alpha1.ListenerNodePort, Port: 9094, Replicas: []v1alpha1.ListenerReplica{
			{ID: 0, AdvertisedHost: "a.example"}, {ID: 1, AdvertisedHost: "2001:db8::1", AdvertisedPort: ptr.To[int32](443)}}}, nil,
			"external 10.0.0.2:30000,[2001:db8::1]:443,a.example:30001 0=a.example:30001 1=[2001:db8::1]:443 2=10.0.0.2:30003", complete, ""},
		{"not yet, without a node", nodePorts(), func(o *Observation) { o.Pods[1].Spec.NodeName = "" },
			"external 10.0.0.0:30000,10.0.0.2:30000 0=10.0.0.0:30001 2=10.0.0.2:30003", v1alpha1.ReasonWaitingForAddress, "Service orders-1-external waits for a node's address"},
		{"the last one, without a node for a while", nodePorts(), func(o *Observation) {
			o.Pods[1].Spec.NodeName = ""
			o.Partition.Status.Listeners = []v1alpha1.ListenerStatus{{Name: "external", Replicas: []v1alpha1.ListenerAddress{{ID: 1, Host: "10.0.0.7", Port: 1}}}}
		}, "external 10.0.0.0:30000,10.0.0.2:30000,10.0.0.7:30000 0=10.0.0.0:30001 1=10.0.0.7:30002 2=10.0.0.2:30003", complete, ""},
		{"not yet, without a Service", nodePorts(), func(o *Observation) { o.mustService("orders-2-external").DeletionTimestamp = &metav1.Time{} },
			"external 10.0.0.0:30000,10.0.0.1:30000 0=10.0.0.0:30001 1=10.0.0.1:30002", "", "Service orders-2-external has no node port yet"},
		{"no load balancer yet", balancers(), nil, "lb ", v1alpha1.ReasonWaitingForAddress, "Service orders-lb has no load balancer's address yet"},
		{"those of load balancers", balancers(), func(o *Observation) {
			o.mustService("orders-lb").Status.LoadBalancer.Ingress = ingress("lb.cloud.example")
			o.mustService("orders-0-lb").Status.LoadBalancer.Ingress = ingress("192.0.2.10", "192.0.2.9")
			o.mustService("orders-1-lb").Status.LoadBalancer.Ingress = ingress("b.cloud.example")
			o.mustService("orders-2-lb").Status.LoadBalancer.Ingress = ingress("2001:0db8::0:1")
		}, "lb lb.cloud.example:9095 0=192.0.2.10:9095 1=b.cloud.example:9095", v1alpha1.ReasonWaitingForAddress, "orders-2-lb"},
		{"the one told before, in another order", balancers(), func(o *Observation) {
			for id := range 3 {
				o.mustService(fmt.Sprintf("orders-%d-lb", id)).Status.LoadBalancer.Ingress = ingress(fmt.Sprintf("192.0.2.1%d", id), fmt.Sprintf("192.0.2.2%d", id))
			}
			o.mustService("orders-lb").Status.LoadBalancer.Ingress = ingress("192.0.2.1", "192.0.2.2")
			o.Partition.Status.Listeners = []v1alpha1.ListenerStatus{{Name: "lb", BootstrapServers: "192.0.2.2:9095", Replicas: []v1alpha1.ListenerAddress{{ID: 1, Host: "192.0.2.21", Port: 9095}}}}
		}, "lb 192.0.2.2:9095 0=192.0.2.10:9095 1=192.0.2.21:9095 2=192.0.2.12:9095", complete, ""},
		{"none that two replicas were given", balancers(), func(o *Observation) {
			for id := range 3 {
				o.mustService(fmt.Sprintf("orders-%d-lb", id)).Status.LoadBalancer.Ingress = ingress("192.0.2.1")
			}
			o.mustService("orders-2-lb").Status.LoadBalancer.Ingress = ingress("192.0.2.2")
			o.mustService("orders-lb").Status.LoadBalancer.Ingress = ingress("192.0.2.1")
		}, "lb 192.0.2.1:9095 2=192.0.2.2:9095", v1alpha1.ReasonAddressConflict, "192.0.2.1:9095 is the address of orders-0-lb and of orders-1-lb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := listening(tc.listener)
			if tc.change != nil {
				tc.change(o)
			}
			p := MakePlan(o)
			if got := tellListeners(project(o, p.Progress).Listeners); got != tc.want {
				t.Errorf("told\n%s\nwant\n%s", got, tc.want)
			}
			if tc.reason != "" && p.Progress.Reason != tc.reason || !strings.Contains(p.Progress.Message+strings.Join(o.viewListeners().Waiting, ";"), tc.saying) {
				t.Errorf("Progressing is %s: %s", p.Progress.Reason, p.Progress.Message)
			}
		})
	}
}

// A template that depended on listeners would restart every pod for a change of one.
func TestListenersAreNothingToPods(t *testing.T) {
	without, with := world(), listening(nodePorts(), balancers())
	for id, pod := range without.Desired.Pods {
		if a, b := pod.Annotations[v1alpha1.AnnotationTemplateHash], with.Desired.Pods[id].Annotations[v1alpha1.AnnotationTemplateHash]; a != b {
			t.Errorf("the template of replica %d is %s without listeners, and %s with two", id, a, b)
		}
	}
}

func TestAServiceInTheWayOfAListenerStopsNoPod(t *testing.T) {
	o := listening(nodePorts())
	for i, c := range o.Children {
		if c.GetName() == "orders-0-external" {
			o.Children[i] = nil
		}
	}
	o.Taken = []string{"Service orders-0-external"}
	delete(o.Pods, 2)
	made := false
	for _, a := range MakePlan(o).Actions {
		switch a := a.(type) {
		case CreatePod:
			made = made || a.ID == 2
		case Apply:
			if a.Desired.GetName() == "orders-0-external" {
				t.Error("what is not ours is applied")
			}
		}
	}
	if !made {
		t.Error("the missing pod is not made")
	}
	o.Pods[2] = readyPod(o, 2)
	if p := MakePlan(o).Progress; p.Reason != v1alpha1.ReasonNameConflict || !strings.Contains(p.Message, "Service orders-0-external") {
		t.Errorf("Progressing is %s: %s", p.Reason, p.Message)
	}
	if c := meta.FindStatusCondition(project(o, MakePlan(o).Progress).Conditions, v1alpha1.ConditionReady); c.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %s: %s", c.Status, c.Message)
	}
}

// onNode lets a pod be scheduled, and its kubelet say where.
func (p *partition) onNode(id int, node *corev1.Node) {
	p.t.Helper()
	pod := &corev1.Pod{}
	p.exists(p.name(id), pod)
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
	if err := cluster.api.SubResource("binding").Create(p.t.Context(), pod, binding); err != nil {
		p.t.Fatal(err)
	}
	p.setPod(id, func(pod *corev1.Pod) {
		pod.Status.HostIP = node.Status.Addresses[0].Address
		pod.Status.HostIPs = []corev1.HostIP{{IP: pod.Status.HostIP}}
	})
}

// newNode makes a node with that address.
func newNode(t *testing.T, name, address string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := cluster.api.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.api.Delete(t.Context(), node) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	if err := cluster.api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	return node
}

// tells waits until clients are told that.
func (p *partition) tells(want func() string) {
	p.t.Helper()
	await(p.t, "the addresses of listeners", func() string {
		if got, want := tellListeners(p.status().Listeners), want(); got != want {
			return fmt.Sprintf("told %q, want %q", got, want)
		}
		return ""
	})
}

func (p *partition) nodePort(service string) int32 {
	p.t.Helper()
	s := &corev1.Service{}
	p.exists(service, s)
	return s.Spec.Ports[0].NodePort
}

// The API server gives the node ports. Addresses follow pods to other nodes; Services go with
// listeners and replicas; what is not ours stays; pods are not touched.
func TestListenerOfNodePorts(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, nil)
	var nodes []*corev1.Node
	for i := range 4 {
		nodes = append(nodes, newNode(t, fmt.Sprintf("listeners-%d", i), fmt.Sprintf("192.0.2.%d", i)))
	}
	for id := range 3 {
		p.onNode(id, nodes[id])
	}
	p.serve(3)
	before := p.pods()
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.rp.Namespace, Name: "orders-1-old",
		Labels: map[string]string{v1alpha1.LabelPartition: "orders", v1alpha1.LabelListener: "old", v1alpha1.LabelReplica: "1"}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if err := cluster.api.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Listeners = []v1alpha1.ListenerSpec{nodePorts()} })
	at := func(replicas ...int) func() string {
		return func() string {
			var servers, told []string
			for id, node := range replicas {
				servers = append(servers, fmt.Sprintf("192.0.2.%d:%d", node, p.nodePort("orders-external")))
				told = append(told, fmt.Sprintf("%d=192.0.2.%d:%d", id, node, p.nodePort(fmt.Sprintf("orders-%d-external", id))))
			}
			return "external " + strings.Join(servers, ",") + " " + strings.Join(told, " ")
		}
	}
	p.tells(at(0, 1, 2))
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonComplete)
	p.onlyReads()
	if after := p.pods(); after != before {
		t.Errorf("pods were %s, and are %s", before, after)
	}

	pod := &corev1.Pod{}
	p.exists("orders-2", pod)
	uid := pod.UID
	if err := cluster.api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	await(t, "the pod to be made anew", func() string {
		if err := cluster.api.Get(t.Context(), p.key("orders-2"), pod); err != nil || pod.UID == uid {
			return fmt.Sprint("not yet ", err)
		}
		return ""
	})
	p.onNode(2, nodes[3])
	p.tells(at(0, 1, 3))

	p.setPod(2, runPod(0))
	p.register(2)
	p.renew(10, 0, 1, 2)
	p.join(0, 1, 2)
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Replicas = 2 })
	p.gone("orders-2-external", &corev1.Service{})
	p.tells(at(0, 1))
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Listeners = nil })
	for _, name := range []string{"orders-external", "orders-0-external", "orders-1-external"} {
		p.gone(name, &corev1.Service{})
	}
	p.tells(func() string { return "" })
	for _, name := range []string{"orders", "orders-replicas", "orders-1-old"} {
		if err := cluster.api.Get(t.Context(), p.key(name), &corev1.Service{}); err != nil {
			t.Errorf("Service %s: %v", name, err)
		}
	}
}

// pods names the pods of a partition, by UID.
func (p *partition) pods() string {
	p.t.Helper()
	var list corev1.PodList
	if err := cluster.api.List(p.t.Context(), &list, client.InNamespace(p.rp.Namespace)); err != nil {
		p.t.Fatal(err)
	}
	var all []string
	for _, pod := range list.Items {
		all = append(all, pod.Name+"/"+string(pod.UID))
	}
	return strings.Join(all, " ")
}

// onlyReads checks that a partition that is as it should be is not written to.
func (p *partition) onlyReads() {
	p.t.Helper()
	r := newTestReconciler(p.t)
	for range 3 {
		plan := MakePlan(r.mustObserve(p.t, p))
		if len(plan.Actions) != 0 {
			p.t.Errorf("to do: %+v", plan.Actions)
		}
	}
	before := p.version()
	if _, err := r.Reconcile(p.t.Context(), p.request()); err != nil {
		p.t.Fatal(err)
	}
	if after := p.version(); after != before {
		p.t.Errorf("the status was written: resourceVersion %s became %s", before, after)
	}
}

func (p *partition) version() string {
	p.t.Helper()
	var rp v1alpha1.ReplicatedPartition
	if err := cluster.api.Get(p.t.Context(), p.key(p.rp.Name), &rp); err != nil {
		p.t.Fatal(err)
	}
	return rp.ResourceVersion
}

// A load balancer's address comes in the Service's status, when the cloud has made it.
func TestListenerOfLoadBalancers(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
		l := balancers()
		l.IPFamilyPolicy, l.IPFamilies = "PreferDualStack", []v1alpha1.IPFamily{"IPv4"} // the cluster has no other
		l.Annotations = map[string]v1alpha1.AnnotationValue{"example.com/kind": "inner"}
		rp.Spec.Listeners = []v1alpha1.ListenerSpec{l}
		rp.Spec.LeaderElection.LeaseDurationSeconds = 300 // nothing but the Services wakes the operator
	})
	live := []epoch.ReplicaID{0, 1, 2}
	for id := range 3 {
		p.setPod(id, runPod(0))
		p.register(id)
	}
	p.leads(0, 1, epoch.ReasonFirstLeader)
	p.renew(10, live...)
	p.condition(v1alpha1.ConditionReady, "True", v1alpha1.ReasonServing)
	p.condition(v1alpha1.ConditionProgressing, "True", v1alpha1.ReasonWaitingForAddress)
	if c := meta.FindStatusCondition(p.status().Conditions, v1alpha1.ConditionProgressing); !strings.Contains(c.Message, "Service orders-2-lb") {
		t.Errorf("Progressing does not say which Service: %s", c.Message)
	}
	p.provide("orders-lb", "lb.cloud.example")
	p.provide("orders-0-lb", "192.0.2.1")
	p.provide("orders-1-lb", "192.0.2.1")
	p.provide("orders-2-lb", "192.0.2.3")
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonAddressConflict)
	p.tells(func() string { return "lb lb.cloud.example:9095 2=192.0.2.3:9095" })
	p.provide("orders-1-lb", "192.0.2.2")
	p.tells(func() string { return "lb lb.cloud.example:9095 0=192.0.2.1:9095 1=192.0.2.2:9095 2=192.0.2.3:9095" })
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonComplete)
	p.onlyReads()
	s := &corev1.Service{}
	p.exists("orders-0-lb", s)
	if s.Annotations["example.com/kind"] != "inner" {
		t.Errorf("annotations %v", s.Annotations)
	}
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Listeners[0].Annotations = nil })
	await(t, "the annotation to go", func() string {
		p.exists("orders-0-lb", s)
		if _, still := s.Annotations["example.com/kind"]; still {
			return "it is there"
		}
		return ""
	})
}

// provide gives a Service its load balancer, as a cloud does.
func (p *partition) provide(service string, host string) {
	p.t.Helper()
	await(p.t, "status of Service "+service, func() string {
		s := &corev1.Service{}
		if err := cluster.api.Get(p.t.Context(), p.key(service), s); err != nil {
			return err.Error()
		}
		s.Status.LoadBalancer.Ingress = ingress(host)
		if err := cluster.api.Status().Update(p.t.Context(), s); err != nil {
			return err.Error()
		}
		return ""
	})
}

// A node port that is taken is for the user to change; all else goes on.
func TestANodePortThatIsTakenIsToldOf(t *testing.T) {
	needsCluster(t)
	other := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Listeners = []v1alpha1.ListenerSpec{nodePorts()} })
	taken := other.nodePort("orders-0-external")
	p := newPartition(t, nil)
	p.serve(3)
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) {
		l := nodePorts()
		l.Replicas = []v1alpha1.ListenerReplica{{ID: 1, NodePort: &taken}}
		s.Listeners = []v1alpha1.ListenerSpec{l}
	})
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonApplyFailed)
	c := meta.FindStatusCondition(p.status().Conditions, v1alpha1.ConditionProgressing)
	if !strings.Contains(c.Message, "Service orders-1-external") || !strings.Contains(c.Message, fmt.Sprint(taken)) {
		t.Errorf("Progressing says %s", c.Message)
	}
	p.condition(v1alpha1.ConditionReady, "True", v1alpha1.ReasonServing)
	p.exists("orders-2-external", &corev1.Service{})
	if err := cluster.api.Get(t.Context(), p.key("orders-1-external"), &corev1.Service{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Service that was refused: %v", err)
	}
}

func TestForeignServiceOfAListenersName(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, nil)
	p.serve(3)
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.rp.Namespace, Name: "orders-external"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if err := cluster.api.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	version := foreign.ResourceVersion
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Listeners = []v1alpha1.ListenerSpec{nodePorts()} })
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonNameConflict)
	p.condition(v1alpha1.ConditionReady, "True", v1alpha1.ReasonServing)
	p.exists("orders-0-external", &corev1.Service{})
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Listeners = nil })
	p.gone("orders-0-external", &corev1.Service{})
	p.exists("orders-external", foreign)
	if foreign.ResourceVersion != version {
		t.Error("the foreign Service was touched")
	}
}

// What the API server adds to a Service is nothing to put right.
func TestTheSecondFamilyIsLeftAlone(t *testing.T) {
	l := nodePorts()
	l.IPFamilyPolicy, l.IPFamilies = "PreferDualStack", []v1alpha1.IPFamily{"IPv6"}
	o := listening(l)
	for i, want := range o.Desired.Children {
		s, ok := o.Children[i].(*corev1.Service)
		if !ok || s.Labels[v1alpha1.LabelListener] == "" {
			continue
		}
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
		if applied(want, s) {
			t.Fatal("the lists are equal already")
		}
		if settleFamilies(want.(*corev1.Service), s); !applied(want, s) {
			t.Errorf("Service %s would be applied for ever", s.Name)
		}
	}
}
