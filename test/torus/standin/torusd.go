package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"
)

var clientPrefix = clientv3.WithPrefix()

const (
	// lease is for how long a peer that is silent counts as heard.
	lease = 30
	// beat is how often a peer tells of itself.
	beat = 2 * time.Second
)

// daemon is torusd. Like the real one it ends by itself on an interrupt alone.
func daemon(l line) {
	if l.flags["version"] != "" {
		fmt.Printf("torusd\nVersion: %s\n", release)
		return
	}
	m := meta{l.connect()}
	g, err := m.global()
	stop(err, "Couldn't start")
	uuid, err := identity(l.flags["data-dir"])
	stop(err, "Couldn't start")
	size, err := bytes(l.flags["size"], l.flags["data-dir"])
	stop(err, "error parsing size")
	address := l.flags["peer-address"]
	u, err := url.Parse(address)
	stop(err, "Couldn't parse peer address "+address)
	if u.Scheme == "" {
		stop(errors.New("(http:// or tdp://)"), "Peer address "+address+" does not have URL scheme")
	}
	listener, err := (&net.ListenConfig{}).Listen(forever(), "tcp", u.Host)
	stop(err, "couldn't use server")
	defer listener.Close()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go tell(m, peer{UUID: uuid, Address: address, TotalBlocks: size / g.BlockSize})
	<-interrupted
	fmt.Println("\nReceived an interrupt, stopping services...")
}

func stop(err error, what string) {
	if err != nil {
		fmt.Printf("%s: %s\n", what, err)
		os.Exit(1)
	}
}

// identity is the peer's UUID, which its store keeps.
func identity(dir string) (string, error) {
	path := filepath.Join(dir, "metadata", "uuid")
	text, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return string(text), err
	}
	id := make([]byte, 16)
	rand.Read(id)
	x := hex.EncodeToString(id)
	uuid := strings.Join([]string{x[:8], x[8:12], x[12:16], x[16:20], x[20:]}, "-")
	return uuid, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(uuid), 0o600))
}

// bytes reads a size such as 20GiB, or a part of the file system such as 50%.
func bytes(text, dir string) (uint64, error) {
	part, ok := strings.CutSuffix(text, "%")
	if !ok {
		return humanize.ParseBytes(text)
	}
	percent, err := strconv.Atoi(part)
	if err != nil || percent < 1 || percent > 100 {
		return 0, errors.New("invalid size; must be between 1% and 100%")
	}
	var s unix.Statfs_t
	err = unix.Statfs(dir, &s)
	return s.Blocks * uint64(s.Bsize) * uint64(percent) / 100, err
}

// tell writes with each beat how the peer is, under a lease. When the etcd does not answer it goes on trying.
func tell(m meta, p peer) {
	granted := clientv3.LeaseID(0)
	for ; ; time.Sleep(beat) {
		if granted == 0 {
			r, err := m.Grant(forever(), lease)
			if err != nil {
				continue
			}
			granted = r.ID
		}
		if err := p.move(m); err != nil {
			continue
		}
		p.LastSeen = time.Now().UnixNano()
		_, errAlive := m.KeepAliveOnce(forever(), granted)
		_, errPut := m.Put(forever(), prefix+"nodes/"+p.UUID, text(p), clientv3.WithLease(granted))
		if errAlive != nil || errPut != nil {
			granted = 0 // the lease may have ended
		}
	}
}

// move brings the number of the peer's blocks a step nearer to its share.
func (p *peer) move(m meta) error {
	r, _, errRing := m.ring()
	volumes, errVolumes := m.volumes()
	if err := errors.Join(errRing, errVolumes); err != nil {
		return err
	}
	share := uint64(0)
	if slices.Contains(r.Peers, p.UUID) {
		for _, v := range volumes {
			share += v.Blocks * uint64(min(r.Replication, len(r.Peers)))
		}
		share = (share + uint64(len(r.Peers)) - 1) / uint64(len(r.Peers))
	}
	const slowest = 64 // blocks in a beat
	p.Moved = 0
	if share != p.UsedBlocks {
		step := min(max(share, p.UsedBlocks)-min(share, p.UsedBlocks), slowest)
		if p.Moved = step; share > p.UsedBlocks {
			p.UsedBlocks += step
		} else {
			p.UsedBlocks -= step
		}
	}
	return nil
}
