package rbd

import (
	"context"
	"slices"
	"syscall"
)

// mostNames is how many images Contents names.
const mostNames = 3

// Contents are the images of a pool.
type Contents struct {
	// Images and Trashed count them; Names and TrashedNames are the first of them, in their order.
	Images       int      `json:"images"`
	Names        []string `json:"names,omitempty"`
	Trashed      int      `json:"trashed"`
	TrashedNames []string `json:"trashedNames,omitempty"`
	// Unknown is set where the OSDs did not answer.
	Unknown bool `json:"unknown,omitempty"`
}

// ContentsOf counts images, and names the first of them.
func ContentsOf(names, trashed []string) Contents {
	first := func(all []string) []string {
		all = slices.Sorted(slices.Values(all))
		return all[:min(len(all), mostNames)]
	}
	return Contents{Images: len(names), Names: first(names), Trashed: len(trashed), TrashedNames: first(trashed)}
}

// Contents counts the images of the pool and of its trash.
func (p *Pool) Contents(ctx context.Context) (Contents, error) {
	var c Contents
	err := p.ask(ctx, command{Prefix: listContents}, &c)
	return c, err
}

func (l *Library) contents(io uintptr) (any, syscall.Errno) {
	names, errno := l.names(io)
	if errno != 0 {
		return nil, errno
	}
	all, errno := l.trash(io)
	if errno != 0 {
		return nil, errno
	}
	var trashed []string
	for _, t := range all {
		trashed = append(trashed, t.Name)
	}
	return ContentsOf(names, trashed), 0
}

func (l *Library) names(io uintptr) (names []string, errno syscall.Errno) {
	for room := uintptr(roomAtFirst); ; {
		entries, n := make([]imageEntry, room), room
		errno := errnoOf(l.list(io, &entries[0], &n))
		if errno == syscall.ERANGE && n > room {
			room = n
			continue
		}
		if errno != 0 {
			return nil, errno
		}
		for _, e := range entries[:n] {
			names = append(names, text(e.name))
		}
		l.listFree(&entries[0], n)
		return names, 0
	}
}
