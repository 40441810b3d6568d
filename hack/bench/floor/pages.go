package floor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Paged is how fast bytes go into the page cache, in bytes per second.
type Paged struct {
	// First is of the first file, Later of the last one.
	First, Later float64
}

const (
	pagesFile  = 256 << 20
	pagesFiles = 9 // the last one begins after 2 GiB
)

// Pages writes new files until memory comes into use that has been free for long. On
// a virtual machine that gives free memory back to its host, each such page has to be
// fetched again, in the middle of a write; then only short runs tell what a program
// costs.
func Pages(dir string) (Paged, error) {
	var rates [pagesFiles]float64
	var errs []error
	for i := range pagesFiles {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("pages-", i)))
		if err != nil {
			return Paged{}, errors.Join(append(errs, err)...)
		}
		defer func() { _ = os.Remove(f.Name()) }()
		buf := make([]byte, chunk)
		begun := time.Now()
		for range pagesFile / chunk {
			if _, err := f.Write(buf); err != nil {
				errs = append(errs, err)
				break
			}
		}
		rates[i] = pagesFile / time.Since(begun).Seconds()
		errs = append(errs, f.Close())
	}
	return Paged{rates[0], rates[pagesFiles-1]}, errors.Join(errs...)
}
