package replica

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}

func newChangeID() epoch.ChangeID { return epoch.ChangeID(randomHex(8)) }
