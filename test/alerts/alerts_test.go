package alerts

import (
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"
)

// What is scraped of one partition and its replicas, with a place for the values.
const (
	orders = `{namespace="shop",partition="orders"} `
	leader = `{namespace="shop",partition="orders",pod="orders-0"} `
	ofRP   = `{controller="replicatedpartition",result="success"} `
	inRP   = `{name="replicatedpartition",controller="replicatedpartition"} `
)

// cases show for every alert when it fires and when it does not. Values are 30 s apart;
// "at" is when one looks.
var cases = []struct {
	alert, name string
	series      []string
	at          time.Duration
	want        string // labels and value of what fires; nothing when empty
}{
	{"TidemarkNoLeader", "nobody leads for a minute", []string{"tidemark_partition_has_leader" + orders + "1 0x4"},
		90 * time.Second, `{namespace="shop", partition="orders"} 0`},
	{"TidemarkNoLeader", "nobody leads for half a minute", []string{"tidemark_partition_has_leader" + orders + "1 0x4"}, time.Minute, ""},
	{"TidemarkNoLeader", "a failover", []string{"tidemark_partition_has_leader" + orders + "1 0 1x4"}, 2 * time.Minute, ""},
	{"TidemarkNoLeader", "an operator that stands by shows what it saw last", []string{
		`tidemark_partition_has_leader{namespace="shop",partition="orders",instance="a"} 0x6`,
		`tidemark_partition_has_leader{namespace="shop",partition="orders",instance="b"} 1x6`}, 3 * time.Minute, ""},

	{"TidemarkBelowMinISR", "one of two", []string{
		"tidemark_partition_live_in_sync_replicas" + orders + "1x4", "tidemark_partition_min_in_sync_replicas" + orders + "2x4"},
		2 * time.Minute, `{namespace="shop", partition="orders"} 1`},
	{"TidemarkBelowMinISR", "just enough", []string{
		"tidemark_partition_live_in_sync_replicas" + orders + "2x4", "tidemark_partition_min_in_sync_replicas" + orders + "2x4"}, 2 * time.Minute, ""},
	{"TidemarkBelowMinISR", "another partition has enough", []string{
		"tidemark_partition_live_in_sync_replicas" + orders + "2x4", "tidemark_partition_min_in_sync_replicas" + orders + "2x4",
		`tidemark_partition_live_in_sync_replicas{namespace="shop",partition="carts"} 1x4`,
		`tidemark_partition_min_in_sync_replicas{namespace="shop",partition="carts"} 2x4`},
		2 * time.Minute, `{namespace="shop", partition="carts"} 1`},

	{"TidemarkUnderReplicated", "a replica is away", []string{
		"tidemark_partition_live_in_sync_replicas" + orders + "2x30", "tidemark_partition_assigned_replicas" + orders + "3x30"},
		10 * time.Minute, `{namespace="shop", partition="orders"} 2`},
	{"TidemarkUnderReplicated", "a roll", []string{
		"tidemark_partition_live_in_sync_replicas" + orders + "2x5 3 2x5 3 2x5 3x9", "tidemark_partition_assigned_replicas" + orders + "3x30"}, 12 * time.Minute, ""},

	{"TidemarkHighWatermarkStalled", "followers do not fetch", []string{
		"tidemark_replica_leads" + leader + "1x30", "tidemark_replica_log_end_offset" + leader + "10 20x30", "tidemark_replica_high_watermark_offset" + leader + "10x30"},
		8 * time.Minute, `{namespace="shop", partition="orders", pod="orders-0"} 1`},
	{"TidemarkHighWatermarkStalled", "commits go on", []string{
		"tidemark_replica_leads" + leader + "1x30", "tidemark_replica_log_end_offset" + leader + "20+5x30", "tidemark_replica_high_watermark_offset" + leader + "10+5x30"}, 8 * time.Minute, ""},
	{"TidemarkHighWatermarkStalled", "nobody writes", []string{
		"tidemark_replica_leads" + leader + "1x30", "tidemark_replica_log_end_offset" + leader + "10x30", "tidemark_replica_high_watermark_offset" + leader + "10x30"}, 8 * time.Minute, ""},
	{"TidemarkHighWatermarkStalled", "a record every ten minutes is seen under way", []string{
		"tidemark_replica_leads" + leader + "1x30", "tidemark_replica_log_end_offset" + leader + "10x15 11x14", "tidemark_replica_high_watermark_offset" + leader + "10x16 11x13"}, 8 * time.Minute, ""},
	{"TidemarkHighWatermarkStalled", "a follower", []string{
		"tidemark_replica_leads" + leader + "0x30", "tidemark_replica_log_end_offset" + leader + "20x30", "tidemark_replica_high_watermark_offset" + leader + "10x30"}, 8 * time.Minute, ""},

	{"TidemarkEpochStorm", "an election every minute", []string{"tidemark_partition_leader_epoch" + orders + "7 7 8 8 9 9 10 10 11 11 12 12 13 13"},
		7 * time.Minute, `{namespace="shop", partition="orders"} 6`},
	{"TidemarkEpochStorm", "three nodes drained", []string{"tidemark_partition_leader_epoch" + orders + "70x9 71x9 72x9 73x9"}, 20 * time.Minute, ""},
	{"TidemarkEpochStorm", "as many over a day", []string{"tidemark_partition_leader_epoch" + orders + "1x90 2x90 3x90 4x90 5x90 6x90 7x90"}, 5 * time.Hour, ""},

	{"TidemarkRecordRegression", "the record goes backwards", []string{"tidemark_record_regressions_total" + leader + "0x4 1x4"},
		4 * time.Minute, `{namespace="shop", partition="orders", pod="orders-0"} 1`},
	{"TidemarkRecordRegression", "a process that starts sees it at once", []string{"tidemark_record_regressions_total" + leader + "_x4 1x4"},
		4 * time.Minute, `{namespace="shop", partition="orders", pod="orders-0"} 1`},
	{"TidemarkRecordRegression", "two hours later", []string{"tidemark_record_regressions_total" + leader + "0x4 1x300"}, 2 * time.Hour, ""},
	{"TidemarkRecordRegression", "never", []string{"tidemark_record_regressions_total" + leader + "0x8"}, 4 * time.Minute, ""},

	{"TidemarkVolumeFilling", "nine tenths", []string{
		"tidemark_replica_volume_available_bytes" + leader + "100x20", "tidemark_replica_volume_capacity_bytes" + leader + "1000x20"},
		5 * time.Minute, `{namespace="shop", partition="orders", pod="orders-0"} 0.9`},
	{"TidemarkVolumeFilling", "85 %, no more", []string{
		"tidemark_replica_volume_available_bytes" + leader + "150x20", "tidemark_replica_volume_capacity_bytes" + leader + "1000x20"}, 5 * time.Minute, ""},
	{"TidemarkVolumeFilling", "not measured yet", []string{
		"tidemark_replica_volume_available_bytes" + leader + "0x20", "tidemark_replica_volume_capacity_bytes" + leader + "0x20"}, 5 * time.Minute, ""},

	{"TidemarkVolumeFull", "full", []string{"tidemark_replica_volume_full" + leader + "1x4"}, time.Minute, `{namespace="shop", partition="orders", pod="orders-0"} 1`},
	{"TidemarkVolumeFull", "retention makes room", []string{"tidemark_replica_volume_full" + leader + "1 0 1 0"}, 90 * time.Second, ""},

	{"TidemarkLogDamaged", "damaged", []string{"tidemark_replica_log_damaged" + leader + "1x4"}, time.Minute, `{namespace="shop", partition="orders", pod="orders-0"} 1`},
	{"TidemarkLogDamaged", "rebuilt at once", []string{"tidemark_replica_log_damaged" + leader + "1 0 0 0"}, 90 * time.Second, ""},

	{"TidemarkOperatorAbsent", "never seen", []string{"tidemark_replica_leads" + leader + "1x40"}, 10 * time.Minute, `{} 1`},
	{"TidemarkOperatorAbsent", "gone", []string{`tidemark_status_writes_total{instance="a"} 0x4`}, 20 * time.Minute, `{} 1`},
	{"TidemarkOperatorAbsent", "one stands in", []string{`tidemark_status_writes_total{instance="a"} 0x4`, `tidemark_status_writes_total{instance="b"} 0x40`}, 20 * time.Minute, ""},

	{"TidemarkReconcileStuck", "a reconcile hangs", []string{"workqueue_longest_running_processor_seconds" + inRP + "0+30x30"}, 8 * time.Minute, `{} 480`},
	{"TidemarkReconcileStuck", "reconciles are slow", []string{"workqueue_longest_running_processor_seconds" + inRP + "30x30"}, 8 * time.Minute, ""},
	{"TidemarkReconcileStuck", "work waits and none ends", []string{"workqueue_depth" + inRP + "3x40", "controller_runtime_reconcile_total" + ofRP + "100x40"}, 12 * time.Minute, `{} 3`},
	{"TidemarkReconcileStuck", "a queue that is worked off", []string{"workqueue_depth" + inRP + "3x40", "controller_runtime_reconcile_total" + ofRP + "100+10x40"}, 12 * time.Minute, ""},
	{"TidemarkReconcileStuck", "nothing to do", []string{"workqueue_depth" + inRP + "0x40", "controller_runtime_reconcile_total" + ofRP + "100x40"}, 12 * time.Minute, ""},

	{"TidemarkReconcileFailing", "again and again", []string{"controller_runtime_reconcile_errors_total" + inRP + "0+1x60"}, 20 * time.Minute, `{} 0.03333`},
	{"TidemarkReconcileFailing", "an API server that was away", []string{"controller_runtime_reconcile_errors_total" + inRP + "0+5x10 50x50"}, 20 * time.Minute, ""},

	{"TidemarkReconcileRunaway", "objects are applied for ever", []string{"tidemark_partition_has_leader" + orders + "1x100",
		`tidemark_objects_applied_total{kind="Service"} 0+60x100`}, 30 * time.Minute, `{} 2`},
	{"TidemarkReconcileRunaway", "statuses are written for ever", []string{"tidemark_partition_has_leader" + orders + "1x100",
		`tidemark_status_writes_total{instance="a"} 0+60x100`}, 30 * time.Minute, `{} 2`},
	{"TidemarkReconcileRunaway", "reconciles without a pause", []string{"tidemark_partition_has_leader" + orders + "1x100",
		"controller_runtime_reconcile_total" + ofRP + "0+1500x100"}, 30 * time.Minute, `{} 50`},
	{"TidemarkReconcileRunaway", "a busy partition", []string{"tidemark_partition_has_leader" + orders + "1x100",
		`tidemark_objects_applied_total{kind="Service"} 5x100`, `tidemark_status_writes_total{instance="a"} 0+6x100`,
		"controller_runtime_reconcile_total" + ofRP + "0+60x100"}, 30 * time.Minute, ""},
	{"TidemarkReconcileRunaway", "a start with many partitions", []string{"tidemark_partition_has_leader" + orders + "1x100",
		`tidemark_objects_applied_total{kind="Service"} 0+600x5 3000x90`}, 30 * time.Minute, ""},
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	all := rules(t)
	fired, silent := map[string]bool{}, map[string]bool{}
	for _, tc := range cases {
		t.Run(tc.alert+"/"+tc.name, func(t *testing.T) {
			r, ok := all[tc.alert]
			if !ok {
				t.Fatalf("there is no alert %s", tc.alert)
			}
			var got []string
			for _, f := range scrape(t, tc.series...).fires(t, r, tc.at) {
				got = append(got, f.String())
				readable(t, r, f)
			}
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("fires: %q, want %q", got, tc.want)
			}
		})
		if tc.want == "" {
			silent[tc.alert] = true
		} else {
			fired[tc.alert] = true
		}
	}
	for name := range all {
		if !fired[name] || !silent[name] {
			t.Errorf("%s is not shown to fire and not to fire", name)
		}
	}
}

// readable fills an alert's annotations in, as Prometheus does, from the labels that it
// fires with.
func readable(t *testing.T, r rule, f firing) {
	t.Helper()
	if !slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) {
		t.Errorf("%s has severity %q", r.Alert, r.Labels["severity"])
	}
	for _, name := range []string{"summary", "description"} {
		text := r.Annotations[name]
		if text == "" {
			t.Errorf("%s has no %s", r.Alert, name)
		}
		parsed, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"humanizePercentage": func(float64) string { return "90%" }}).
			Parse("{{ $labels := .labels }}{{ $value := .value }}" + text)
		if err != nil {
			t.Errorf("%s, %s: %v", r.Alert, name, err)
			continue
		}
		var b strings.Builder
		if err := parsed.Execute(&b, map[string]any{"labels": f.labels.Map(), "value": f.value}); err != nil {
			t.Errorf("%s, %s: %v", r.Alert, name, err)
		}
	}
}
