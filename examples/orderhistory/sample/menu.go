package sample

import "github.com/millrace-dev/millrace/examples/orderhistory/order"

type menu struct {
	restaurant string
	dishes     []order.Line // without quantities
}

var menus = []menu{
	{"Ajanta", []order.Line{
		{Name: "Chicken Vindaloo", PriceCents: 1250}, {Name: "Garlic Naan", PriceCents: 350}, {Name: "Palak Paneer", PriceCents: 1090},
	}},
	{"Chez Vin", []order.Line{
		{Name: "Steak Frites", PriceCents: 2150}, {Name: "Salade Niçoise", PriceCents: 1390}, {Name: "Crème Brûlée", PriceCents: 690},
	}},
	{"Green Garden", []order.Line{
		{Name: "Green Curry", PriceCents: 1180}, {Name: "Summer Rolls", PriceCents: 540}, {Name: "Sticky Rice", PriceCents: 280},
	}},
	{"Noodle Bar", []order.Line{
		{Name: "Miso Soup", PriceCents: 420}, {Name: "Tonkotsu Ramen", PriceCents: 1420}, {Name: "Gyoza", PriceCents: 650},
	}},
	{"Pizza Vesuvio", []order.Line{
		{Name: "Pizza Bianca", PriceCents: 980}, {Name: "Lasagne", PriceCents: 1150}, {Name: "Tiramisu", PriceCents: 590},
	}},
}
