package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// ctl is torusctl.
func ctl(l line) {
	words := append(slices.Clone(l.words), "", "")
	if words[0] == "version" || l.flags["version"] != "" {
		fmt.Printf("torusctl\nVersion: %s\n", release)
		return
	}
	run, known := map[string]func(meta, line){
		"init ": initialize, "list-peers ": listPeers, "peer list": listPeers, "peer add": peerAdd, "peer remove": peerRemove,
		"ring get": ringGet, "ring set-replication": setReplication, "volume create-block": createBlock, "volume list": listVolumes,
		"volume delete": deleteVolume, "block load": load, "wipe ": wipe,
	}[words[0]+" "+words[1]]
	if !known {
		fmt.Println("Usage:\n  torusctl [command]")
		os.Exit(1)
	}
	run(meta{l.connect()}, l)
}

// arguments are the words after a command of two words, as many as it takes.
func (l line) arguments(count int) []string {
	if len(l.words) != 2+count {
		fmt.Printf("Usage:\n  torusctl %s\n", strings.Join(l.words, " "))
		os.Exit(1)
	}
	return l.words[2:]
}

func initialize(m meta, l line) {
	size, err := humanize.ParseBytes(l.flags["block-size"])
	if err != nil {
		die("error parsing block-size: %v", err)
	}
	if err := m.put(0, "meta/globalmetadata", text(globalMetadata{size}), "meta/the-one-ring", text(ring{Version: 1, Replication: 2})); err != nil {
		die("error writing metadata: %v", err)
	}
}

// mustGlobal is what each command begins with.
func (m meta) mustGlobal() globalMetadata {
	g, err := m.global()
	if err != nil {
		die("couldn't connect to etcd: %v", err)
	}
	return g
}

func (m meta) mustPeers() []peer {
	peers, err := m.peers()
	if err != nil {
		die("couldn't get peers: %v", err)
	}
	return peers
}

func (m meta) mustRing() (ring, int64) {
	r, revision, err := m.ring()
	if err != nil {
		die("couldn't get ring: %v", err)
	}
	return r, revision
}

func listPeers(m meta, l line) {
	g, peers := m.mustGlobal(), m.mustPeers()
	r, _ := m.mustRing()
	var rows [][]string
	var total, used uint64
	for _, p := range peers {
		state := "Avail"
		if slices.Contains(r.Peers, p.UUID) {
			state = "OK"
		}
		rows = append(rows, []string{
			p.Address, p.UUID, humanize.IBytes(p.TotalBlocks * g.BlockSize), humanize.IBytes(p.UsedBlocks * g.BlockSize),
			state, humanize.Time(time.Unix(0, p.LastSeen)), "0 B/sec",
		})
		total, used = total+p.TotalBlocks, used+p.UsedBlocks
	}
	for _, u := range r.Peers {
		if !slices.ContainsFunc(peers, func(p peer) bool { return p.UUID == u }) {
			rows = append(rows, []string{"", u, "???", "???", "DOWN", "Missing", ""})
		}
	}
	print(l, []string{"Address", "UUID", "Size", "Used", "Member", "Updated", "Reb/Rep Data"}, rows)
	if l.flags["csv"] == "" {
		fmt.Printf("Balanced: true Usage: %5.2f%%\n", float64(used)/float64(total)*100)
	}
}

func print(l line, header []string, rows [][]string) {
	if l.flags["csv"] != "" {
		if err := csv.NewWriter(os.Stdout).WriteAll(rows); err != nil {
			die("%v", err)
		}
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 5, 1, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(header, "\t")))
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	_ = w.Flush()
}

// chosen are the UUIDs of the peers that a command names by address or UUID.
func chosen(m meta, l line) (uuids []string) {
	m.mustGlobal()
	peers := m.mustPeers()
	for _, arg := range l.words[2:] {
		i := slices.IndexFunc(peers, func(p peer) bool { return p.UUID == arg || p.Address == arg })
		switch {
		case i >= 0:
			uuids = append(uuids, peers[i].UUID)
		case l.flags["force"] == "":
			die("peer %s not currently healthy. To remove, use `--force`", arg)
		default:
			uuids = append(uuids, arg)
		}
	}
	for _, p := range peers {
		if l.flags["all-peers"] != "" {
			uuids = append(uuids, p.UUID)
		}
	}
	return uuids
}

func peerAdd(m meta, l line) {
	uuids := chosen(m, l)
	r, revision := m.mustRing()
	before := len(r.Peers)
	for _, u := range uuids {
		if !slices.Contains(r.Peers, u) {
			r.Peers = append(r.Peers, u)
		}
	}
	if len(r.Peers) == before { // one that is new is enough
		die("couldn't add peer to ring: %v", errExists)
	}
	set(m, r, revision)
}

func peerRemove(m meta, l line) {
	uuids := chosen(m, l)
	r, revision := m.mustRing()
	before := len(r.Peers)
	r.Peers = slices.DeleteFunc(r.Peers, func(u string) bool { return slices.Contains(uuids, u) })
	if len(r.Peers) == before {
		die("couldn't remove peer from ring: %v", errAbsent)
	}
	set(m, r, revision)
}

func set(m meta, r ring, revision int64) {
	if err := m.change(r, revision); err != nil {
		die("couldn't set new ring: %v", err)
	}
}

func ringGet(m meta, _ line) {
	m.mustGlobal()
	r, _ := m.mustRing()
	fmt.Printf("Ring: Ketama\nReplication:%d\nPeers:", r.Replication)
	for _, u := range r.Peers {
		fmt.Printf("\n\t%s", u)
	}
	fmt.Println()
}

func setReplication(m meta, l line) {
	n, err := strconv.Atoi(l.arguments(1)[0])
	if err != nil {
		die("not an integer number of replicas: %s", l.words[2])
	}
	m.mustGlobal()
	r, revision := m.mustRing()
	r.Replication = n
	set(m, r, revision)
}

func createBlock(m meta, l line) {
	m.mustGlobal()
	args := l.arguments(2)
	size, err := humanize.ParseBytes(args[1])
	if err != nil {
		die("error parsing size %s: %v", args[1], err)
	}
	if err := m.create(args[0], size); err != nil {
		die("error creating volume %s: %v", args[0], err)
	}
}

func listVolumes(m meta, l line) {
	m.mustGlobal()
	volumes, err := m.volumes()
	if err != nil {
		die("error listing volumes: %v\n", err)
	}
	var rows [][]string
	for _, v := range volumes {
		rows = append(rows, []string{v.Name, humanize.IBytes(v.MaxBytes), v.Type})
	}
	print(l, []string{"Volume Name", "Size", "Type"}, rows)
}

func deleteVolume(m meta, l line) {
	m.mustGlobal()
	name := l.arguments(1)[0]
	v, err := m.volume(name)
	if err != nil || v == nil {
		die("cannot get volume %s (perhaps it doesn't exist): %v", name, errors.Join(err, errors.New("etcd: no such volume exists")))
	}
	if m.inUse(v) {
		die("cannot delete volume: torus: locked")
	}
	if err := m.remove(v); err != nil {
		die("cannot delete volume: %v", err)
	}
}

// load is 'block load FILE VOLUME': the volume is made as large as the file, and its blocks are counted.
func load(m meta, l line) {
	g := m.mustGlobal()
	if len(l.words) != 4 {
		l.arguments(2)
	}
	file, err := os.Stat(l.words[2])
	if err != nil {
		die("couldn't open input: %v", err)
	}
	if err := m.create(l.words[3], uint64(file.Size())); err != nil {
		die("couldn't create block volume %s: %v", l.words[3], err)
	}
	v, err := m.volume(l.words[3])
	if err != nil || v == nil {
		die("couldn't open block volume %s: %v", l.words[3], err)
	}
	r, _ := m.mustRing()
	for _, p := range m.mustPeers() {
		if slices.Contains(r.Peers, p.UUID) {
			v.Homes = append(v.Homes, p.UUID)
		}
	}
	v.Blocks = (uint64(file.Size()) + g.BlockSize - 1) / g.BlockSize
	if _, err := m.Put(forever(), prefix+"volumeid/"+strconv.FormatInt(int64(v.ID), 16), text(v)); err != nil {
		die("couldn't load: %v", err)
	}
	fmt.Printf("copied %d bytes\n", file.Size())
}

func wipe(m meta, l line) {
	if l.flags["yes-i-am-sure"] == "" {
		fmt.Println("`YES` not entered, exiting")
		os.Exit(1)
	}
	if _, err := m.Delete(forever(), prefix, clientPrefix); err != nil {
		die("error wiping metadata: %v", err)
	}
}
