package main

func Example() {
	main()
	// Output:
	// lunch over 30 is approved
	// party over 600 is rejected payment refused
	// palace over 100000 is rejected not enough credit
	// credit left: 670
}
