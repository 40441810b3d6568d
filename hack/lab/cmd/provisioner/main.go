// Provisioner makes directory-backed `local` PersistentVolumes for every
// pending claim whose StorageClass names it, resizes them and removes them
// again. Unlike kubernetes.io/host-path its volumes honour fsGroup, so
// containers that do not run as root can write.
//
//	StorageClass parameters: scope=any  (default) any node may mount it, as a network disk
//	                         scope=node only the node the scheduler chose, as a local disk
//	                                    (use volumeBindingMode: WaitForFirstConsumer)
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the cluster")
	base := flag.String("dir", "/var/lib/lab-volumes", "where the directories go")
	every := flag.Duration("every", 200*time.Millisecond, "poll interval")
	flag.Parse()
	cfg, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	cfg.QPS, cfg.Burst = 200, 400
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		log.Fatal(err)
	}
	p := &provisioner{client: client, base: *base}
	for ; ; time.Sleep(*every) {
		if err := p.pass(context.Background()); err != nil {
			log.Print(err)
			time.Sleep(time.Second)
		}
	}
}

type provisioner struct {
	client kubernetes.Interface
	base   string // holds one directory per volume
}

// pass looks at every claim and volume once. It polls: a lab has a handful of
// them, and nothing can be missed.
func (p *provisioner) pass(ctx context.Context) error {
	cached := metav1.ListOptions{ResourceVersion: "0"}
	classes, err := p.client.StorageV1().StorageClasses().List(ctx, cached)
	if err != nil {
		return fmt.Errorf("list storage classes: %w", err)
	}
	claims, err := p.client.CoreV1().PersistentVolumeClaims("").List(ctx, cached)
	if err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	volumes, err := p.client.CoreV1().PersistentVolumes().List(ctx, cached)
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	ours := map[string]*storagev1.StorageClass{}
	for i, sc := range classes.Items {
		if sc.Provisioner == name {
			ours[sc.Name] = &classes.Items[i]
		}
	}
	byName := map[string]*corev1.PersistentVolume{}
	for i := range volumes.Items {
		pv := &volumes.Items[i]
		byName[pv.Name] = pv
		if err := p.removeReleased(ctx, pv); err != nil {
			return fmt.Errorf("remove volume %s: %w", pv.Name, err)
		}
	}
	for i := range claims.Items {
		pvc := &claims.Items[i]
		if pvc.Spec.StorageClassName == nil || ours[*pvc.Spec.StorageClassName] == nil || pvc.DeletionTimestamp != nil {
			continue
		}
		if err := p.serve(ctx, pvc, ours[*pvc.Spec.StorageClassName], byName); err != nil {
			return fmt.Errorf("claim %s/%s: %w", pvc.Namespace, pvc.Name, err)
		}
	}
	return nil
}

// serve grows the claim's volume if it has one, and makes one otherwise.
func (p *provisioner) serve(ctx context.Context, pvc *corev1.PersistentVolumeClaim, sc *storagev1.StorageClass, byName map[string]*corev1.PersistentVolume) error {
	if pvc.Spec.VolumeName == "" {
		if byName[volumeName(pvc)] != nil {
			return nil
		}
		return p.create(ctx, pvc, sc)
	}
	if byName[pvc.Spec.VolumeName] == nil || pvc.Status.Phase != corev1.ClaimBound {
		return nil
	}
	return p.grow(ctx, pvc)
}
