package main

import "text/tabwriter"

func cephPart(o options, w *tabwriter.Writer) error { return nil }
