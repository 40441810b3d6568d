package incluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// topicID waits until it is certain which log this is: a start with another topic id
// would set the log on its volume aside. Anybody may have written into the status what it
// shows, so that the record has to be of that id, too. Without a record that can be read, as
// when it is lost and waits for reports, only the object's own UID is certain, once the status
// shows that no other log was adopted.
func (r *reader) topicID(ctx context.Context, p *v1alpha1.ReplicatedPartition, record lease.Config, log logr.Logger) (epoch.UUID, error) {
	told := ""
	for {
		id, err := confirmedTopicID(ctx, p, record)
		if err == nil {
			return id, nil
		}
		if told != err.Error() {
			told = err.Error()
			log.Info("it is not certain yet which log this is; trying again", "reason", told)
		}
		select {
		case <-ctx.Done():
			return epoch.UUID{}, err
		case <-time.After(retryRead):
		}
		if next, err := r.partition(ctx, p.Namespace, p.Name); err == nil && next.UID == p.UID {
			p = next
		}
	}
}

func confirmedTopicID(ctx context.Context, p *v1alpha1.ReplicatedPartition, record lease.Config) (epoch.UUID, error) {
	own, err := epoch.ParseUUID(string(p.UID))
	if err != nil {
		return own, fmt.Errorf("uid of ReplicatedPartition %s/%s: %w", p.Namespace, p.Name, err)
	}
	id, err := epoch.ParseUUID(p.EffectiveTopicID())
	if err != nil {
		return id, fmt.Errorf("status.topicID of ReplicatedPartition %s/%s: %w", p.Namespace, p.Name, err)
	}
	record.TopicID = id
	store, err := lease.New(record)
	if err != nil {
		return id, err
	}
	_, err = store.Get(ctx)
	if id == own && p.Status.TopicID != "" && !errors.Is(err, epoch.ErrForeign) {
		return id, nil
	}
	return id, err
}
