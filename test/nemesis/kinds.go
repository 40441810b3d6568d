package nemesis

// Kind is a kind of fault.
type Kind string

// Faults of one replica's process.
const (
	// Kill is kill -9; the container starts again at once.
	Kill Kind = "kill"
	// Hold is kill -9, and the container starts again only later, as after several crashes.
	Hold Kind = "kill-and-hold"
	// Pause is SIGSTOP, and SIGCONT before the lease could expire.
	Pause Kind = "pause"
	// LongPause is SIGSTOP, and SIGCONT after the lease has expired: the process wakes up as a leader of the past.
	LongPause Kind = "long-pause"
	// Term is SIGTERM: an orderly stop, and a start with a clean mark.
	Term Kind = "sigterm"
	// DeletePod deletes the pod, which stops in good order within its grace period.
	DeletePod Kind = "delete-pod"
	// ForceDelete deletes the pod without a grace period: the process is killed, the witness gone.
	ForceDelete Kind = "force-delete-pod"
	// Zombie moves the pod to another node, with the volume as it was at that moment, while its process stands still. When
	// it goes on it has its network and its old volume: two processes of one id.
	Zombie Kind = "zombie"
	// PowerCut takes a whole node away, without a word to the API server: process, witness and the part of the log that
	// was not synced are gone when it comes back.
	PowerCut Kind = "power-cut"
	// WitnessLost is kill -9, and a start without witness and clean mark: nothing is lost, and nothing proves it.
	WitnessLost Kind = "witness-lost"
	// VolumeLost is kill -9, and a start on an empty volume.
	VolumeLost Kind = "volume-lost"
)

// Faults of one replica's network.
const (
	// Unplug takes the network interface away.
	Unplug Kind = "unplug"
	// CutAPI cuts it off from the API server only.
	CutAPI Kind = "cut-api"
	// CutPeers cuts its replication connections only.
	CutPeers Kind = "cut-peers"
	// CutClients cuts its clients off only.
	CutClients Kind = "cut-clients"
	// CutPair cuts it off from one other replica.
	CutPair Kind = "cut-pair"
	// Lossy loses a share of all packets.
	Lossy Kind = "lossy-link"
	// Slow squeezes what it sends through a narrow pipe, so that it comes late.
	Slow Kind = "slow-link"
)

// Faults of the control plane, and changes that a user makes.
const (
	// KillAPI is kill -9 of the API server, and a start later.
	KillAPI Kind = "api-kill"
	// PauseAPI is SIGSTOP of the API server: calls hang, and land when it goes on.
	PauseAPI Kind = "api-pause"
	// KillOperator is kill -9 of the operator, and a start later.
	KillOperator Kind = "operator-kill"
	// PauseOperator stops it: it goes on with a view of the past.
	PauseOperator Kind = "operator-pause"
	// SecondOperator lets another one work at the same time.
	SecondOperator Kind = "second-operator"
	// CutOperator cuts the operator's network.
	CutOperator Kind = "operator-cut"
	// Scale changes the number of replicas.
	Scale Kind = "scale"
	// MinISR changes minInSyncReplicas.
	MinISR Kind = "min-isr"
)

// lasting says how long a fault lasts, in milliseconds; beyond is added to the lease duration.
type lasting struct{ from, to, beyondLease int }

// table holds all kinds, with how often each is drawn.
var table = []struct {
	kind   Kind
	weight int
	lasts  lasting
	// oneWay: the fault may strike in one direction only
	oneWay bool
}{
	{kind: Kill, weight: 6},
	{kind: Hold, weight: 3, lasts: lasting{500, 8000, 0}},
	{kind: Pause, weight: 4, lasts: lasting{50, 2000, 0}},
	{kind: LongPause, weight: 3, lasts: lasting{500, 4000, 1}},
	{kind: Term, weight: 3},
	{kind: DeletePod, weight: 2},
	{kind: ForceDelete, weight: 1},
	{kind: Zombie, weight: 2, lasts: lasting{1000, 9000, 0}},
	{kind: PowerCut, weight: 3, lasts: lasting{500, 8000, 0}},
	{kind: WitnessLost, weight: 3},
	{kind: VolumeLost, weight: 2},
	{kind: Unplug, weight: 3, lasts: lasting{500, 9000, 0}},
	{kind: CutAPI, weight: 3, lasts: lasting{500, 9000, 0}, oneWay: true},
	{kind: CutPeers, weight: 3, lasts: lasting{500, 9000, 0}, oneWay: true},
	{kind: CutClients, weight: 2, lasts: lasting{500, 6000, 0}, oneWay: true},
	{kind: CutPair, weight: 3, lasts: lasting{500, 9000, 0}, oneWay: true},
	{kind: Lossy, weight: 2, lasts: lasting{1000, 8000, 0}, oneWay: true},
	{kind: Slow, weight: 2, lasts: lasting{1000, 8000, 0}},
	{kind: KillAPI, weight: 2, lasts: lasting{0, 5000, 0}},
	{kind: PauseAPI, weight: 2, lasts: lasting{300, 9000, 0}},
	{kind: KillOperator, weight: 2, lasts: lasting{0, 6000, 0}},
	{kind: PauseOperator, weight: 2, lasts: lasting{500, 9000, 0}},
	{kind: SecondOperator, weight: 2, lasts: lasting{2000, 9000, 0}},
	{kind: CutOperator, weight: 1, lasts: lasting{500, 8000, 0}, oneWay: true},
	{kind: Scale, weight: 2},
	{kind: MinISR, weight: 2},
}

// Kinds are all kinds of faults, in the order of their description.
func Kinds() []Kind {
	var all []Kind
	for _, row := range table {
		all = append(all, row.kind)
	}
	return all
}
