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
	beat = 5 * time.Second
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
	blocks, err := openBlocks(l.flags["data-dir"])
	stop(err, "Couldn't start")
	go tell(m, peer{UUID: uuid, Address: address, TotalBlocks: size / g.BlockSize}, blocks)
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
