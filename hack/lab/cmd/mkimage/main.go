// Mkimage packs files into a one-layer docker-archive tarball, which
// `ctr images import`, `docker load` and `skopeo` accept. It needs neither
// Docker nor a registry, and the same input gives the same bytes.
//
//	mkimage -o pause.tar -t localhost/pause:1 -entrypoint /pause bin/pause:/pause [src:dst ...]
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"time"
)

// image is what the flags ask for.
type image struct {
	tags       []string
	entrypoint []string
	user       string
	files      []string // src:dst
}

func main() {
	out := flag.String("o", "image.tar", "output `file`")
	tags := flag.String("t", "", "comma-separated `name:tag` list, each with a registry part (localhost/x:1)")
	entry := flag.String("entrypoint", "", "space-separated entrypoint")
	user := flag.String("user", "", "`uid[:gid]` that the container runs as")
	flag.Parse()
	img := image{tags: strings.Split(*tags, ","), entrypoint: strings.Fields(*entry), user: *user, files: flag.Args()}
	if err := img.write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

// write leaves the finished archive at name, or nothing new there.
func (i image) write(name string) error {
	layer, err := i.layer()
	if err != nil {
		return err
	}
	cfg, err := i.config(layer)
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": i.tags, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := newArchive(&b)
	w.file("layer.tar", 0o644, layer)
	w.file("config.json", 0o644, cfg)
	w.file("manifest.json", 0o644, manifest)
	if err := w.close(); err != nil {
		return err
	}
	if err := os.WriteFile(name+".part", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

// layer holds the files, and the few that programs expect in any root file system.
func (i image) layer() ([]byte, error) {
	var b bytes.Buffer
	w := newArchive(&b)
	w.dir("tmp", 0o1777)
	w.dir("etc", 0o755)
	w.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"))
	w.file("etc/group", 0o644, []byte("root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"))
	for _, f := range i.files {
		src, dst, ok := strings.Cut(f, ":")
		if !ok {
			return nil, fmt.Errorf("want src:dst, got %q", f)
		}
		data, err := os.ReadFile(src)
		if err != nil {
			return nil, err
		}
		w.dir(path.Dir(dst), 0o755)
		w.file(strings.TrimPrefix(dst, "/"), 0o755, data)
	}
	err := w.close()
	return b.Bytes(), err
}

func (i image) config(layer []byte) ([]byte, error) {
	return json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config":  map[string]any{"Entrypoint": i.entrypoint, "User": i.user, "WorkingDir": "/", "Env": []string{"PATH=/usr/bin:/bin:/"}},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
		"history": []any{map[string]any{"created": "1970-01-01T00:00:00Z", "created_by": "mkimage"}},
	})
}

// archive is a tar writer that remembers its first error and which directories it has.
type archive struct {
	w    *tar.Writer
	seen map[string]bool
	err  error
}

func newArchive(b *bytes.Buffer) *archive {
	return &archive{w: tar.NewWriter(b), seen: map[string]bool{}}
}

func (a *archive) add(name string, mode int64, kind byte, data []byte) {
	if a.err != nil {
		return
	}
	a.err = a.w.WriteHeader(&tar.Header{Name: name, Mode: mode, Typeflag: kind, Size: int64(len(data)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX})
	if a.err == nil {
		_, a.err = a.w.Write(data)
	}
}

func (a *archive) file(name string, mode int64, data []byte) { a.add(name, mode, tar.TypeReg, data) }

// dir adds a directory with all its parents; one that is there already keeps its mode.
func (a *archive) dir(name string, mode int64) {
	name = strings.Trim(name, "/")
	if name == "" || name == "." || a.seen[name] {
		return
	}
	a.dir(path.Dir(name), 0o755)
	a.seen[name] = true
	a.add(name+"/", mode, tar.TypeDir, nil)
}

func (a *archive) close() error {
	if a.err != nil {
		return a.err
	}
	return a.w.Close()
}
