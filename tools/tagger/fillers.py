"""Invented persons, organisations, places and numbers to fill templates with. Everything follows from the seed.

Names come from the lists of @faker-js/faker (MIT), joke2k/faker (MIT) and ISTAT's municipalities (CC BY 3.0 IT); many are
invented from syllables, so that a model cannot know all of them by heart."""
import hashlib
import json
import random
import re

LATIN = re.compile(r"^[A-Za-z\u00c0-\u024f' .\-]+$")
MONTHS = {'en': 'January February March April May June July August September October November December'.split(),
          'it': 'gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre'.split()}
WEEKDAYS = {'en': 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split(),
            'it': 'lunedì martedì mercoledì giovedì venerdì sabato domenica'.split()}
TITLES = {'en': 'Mr. Mrs. Ms. Miss Dr. Prof. Mr Mrs Ms Dr'.split(),
          'it': ['Sig.', 'Sig.ra', 'Dott.', 'Dott.ssa', 'Avv.', 'Ing.', 'Prof.', 'Prof.ssa', 'signor', 'signora', 'dottor',
                 'dottoressa', 'Geom.', 'Rag.', 'Arch.']}
JOBS = {'en': 'nurse teacher plumber accountant sales manager software engineer lawyer driver cook electrician researcher'.split(),
        'it': 'infermiere insegnante idraulico contabile elettricista avvocato autista cuoca ricercatore magazziniere'.split()}
NATIONS = {'en': 'Italian French German Spanish Polish Dutch American British Greek Swedish Turkish Indian'.split(),
           'it': 'francese tedesco spagnolo polacco olandese americano inglese greco svedese turco indiano'.split()}
SUFFIXES = ['Ltd', 'Ltd.', 'Inc', 'Inc.', 'LLC', 'PLC', 'Corp.', 'Group', 'and Sons', '& Co.', 'GmbH', 'AG', 'S.A.', 'B.V.', 'AB', 'Oy',
            'Holdings', 'Partners', 'Associates', 'International']
SUFFIXES_IT = ['S.p.A.', 'SpA', 'S.r.l.', 'Srl', 'srl', 'S.n.c.', 'S.a.s.', 'Soc. Coop.', 'e Figli', 'Group', '& C.']
TRADES = ['Systems', 'Technologies', 'Consulting', 'Solutions', 'Bank', 'Insurance', 'Motors', 'Pharma', 'Energy', 'Foods', 'Media',
          'Health', 'Labs', 'Software', 'Analytics', 'Networks', 'Logistics', 'Airlines', 'Capital', 'Telecom', 'Records', 'Research',
          'Data', 'Robotics', 'Decision Technologies', 'Foundation', 'Institute', 'Board', 'Association', 'Services', 'Industries']
TRADES_IT = ['Costruzioni', 'Trasporti', 'Impianti', 'Edilizia', 'Assicurazioni', 'Alimentari', 'Arredamenti', 'Informatica', 'Servizi',
             'Energia', 'Ceramiche', 'Meccanica', 'Viaggi', 'Immobiliare', 'Tessuti', 'Logistica', 'Consulenza', 'Farmaceutici']
FRONTS_IT = ['Banca', 'Studio', 'Officine', 'Autofficina', 'Ristorante', 'Farmacia', 'Cooperativa', 'Fondazione', 'Istituto', 'Gruppo',
             'Cantine', 'Pasticceria', 'Studio legale', 'Impresa edile', 'Azienda agricola', 'Associazione']
BRANDS = ('Google Microsoft Apple Amazon Facebook Netflix Uber Airbnb Spotify Tesla Siemens Bosch Nokia Ericsson Volvo IKEA Philips '
          'Shell Unilever Nestlé Novartis Roche Airbus Renault Peugeot Michelin Danone Orange Vodafone Telefonica Santander BBVA '
          'Inditex Zara Fiat Ferrari Eni Enel Telecom TIM Generali UniCredit Intesa Barilla Ferrero Lavazza Luxottica Pirelli Prada '
          'Benetton Mediaset Leonardo Fincantieri Trenitalia Poste Coop Conad Esselunga Samsung Sony Toyota Honda Nissan Hitachi '
          'Panasonic Huawei Alibaba Tencent Intel AMD IBM Oracle SAP Cisco Dell HP Adobe PayPal Visa Mastercard Citigroup HSBC '
          'Barclays Lloyds Allianz Deloitte KPMG PwC Accenture McKinsey Pfizer Merck Bayer BASF Boeing Walmart Target Starbucks '
          'McDonalds Disney CNN BBC Reuters Bloomberg eBay Yahoo Twitter LinkedIn Zoom Slack Dropbox GitHub Lufthansa Ryanair').split()
STREETS_EN = ['Street', 'St', 'St.', 'Road', 'Rd', 'Avenue', 'Ave', 'Lane', 'Drive', 'Boulevard', 'Court', 'Place', 'Square', 'Way',
              'Terrace', 'Crescent', 'Close', 'Hill', 'Gardens', 'Parkway']
STREETS_IT = ['via', 'via', 'via', 'via', 'viale', 'piazza', 'corso', 'largo', 'vicolo', 'piazzale', 'contrada', 'strada', 'lungomare',
              'borgo', 'salita', 'v.le', 'p.zza', 'c.so']
HEROES_IT = ['Roma', 'Garibaldi', 'Mazzini', 'Cavour', 'Dante Alighieri', 'Giuseppe Verdi', 'G. Verdi', 'Marconi', 'IV Novembre',
             'XXV Aprile', 'XX Settembre', 'della Repubblica', 'dei Mille', 'della Libertà', 'Vittorio Emanuele II', 'San Martino',
             'Santa Maria', 'delle Rose', 'del Popolo', 'Aldo Moro', 'Kennedy', "dell'Industria", 'Leopardi', 'Manzoni', 'Carducci',
             'A. Volta', 'Galileo Galilei', 'De Gasperi', 'Fratelli Bandiera', '1° Maggio', 'Monte Grappa', 'Piave', 'Po']
STATES = 'AL AK AZ CA CO CT FL GA IL IN KS LA MA MI MN NC NJ NY OH OR PA SC TN TX UT VA WA WI SY GU DX NI'.split()
ONSETS = 'b br c ch d dr f fl g gr h j k kl kr l m n p pr r s sh sk st t th tr v w z'.split()
NUCLEI = 'a e i o u ai ei ou ia io oo ee é ö ü'.split()
CODAS = ['', '', '', 'n', 'r', 'l', 's', 'm', 'k', 'nd', 'rt', 'ck', 'sz', 'ng', 'tz']
PARTICLES = ['de ', 'van ', 'von ', 'di ', 'De ', 'Di ', 'Lo ', 'van der ', 'del ', 'al ', 'bin ', 'Mc', "D'", "O'"]
ODD = dict(zip('0123456789', [1, 0, 5, 7, 9, 13, 15, 17, 19, 21])) | dict(zip(
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ', [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]))


def check_letter(text):
    """Of a codice fiscale, or the CIN of an Italian account."""
    return chr(65 + sum(ODD[c] if i % 2 == 0 else (int(c) if c.isdigit() else ord(c) - 65) for i, c in enumerate(text)) % 26)


def in_part(word, part):
    """One name in five is kept for `test`; `all` has every one."""
    return part == 'all' or (hashlib.sha256(word.lower().encode()).digest()[0] % 5 == 0) == (part == 'test')


def words_of(entry):
    """The strings of one of faker's lists, whatever it is split by."""
    if isinstance(entry, dict):
        return [word for part in entry.values() for word in words_of(part)]
    return [word['value'] if isinstance(word, dict) else word for word in entry or []]


# Large cities by the names that each language has for them, which no national list holds.
WORLD_CITIES = {
    'en': ['London', 'Manchester', 'Edinburgh', 'Dublin', 'Paris', 'Lyon', 'Rome', 'Milan', 'Naples', 'Turin', 'Venice', 'Florence', 'Genoa', 'Padua',
           'Berlin', 'Munich', 'Cologne', 'Vienna', 'Zurich', 'Geneva', 'Madrid', 'Seville', 'Barcelona', 'Lisbon', 'Amsterdam', 'Brussels', 'Antwerp',
           'Copenhagen', 'Stockholm', 'Oslo', 'Helsinki', 'Warsaw', 'Prague', 'Budapest', 'Bucharest', 'Athens', 'Istanbul', 'Moscow', 'Kyiv',
           'New York', 'Los Angeles', 'Chicago', 'Boston', 'Seattle', 'San Francisco', 'Washington', 'Toronto', 'Montreal', 'Mexico City', 'Bogota',
           'Lima', 'Buenos Aires', 'Rio de Janeiro', 'Tokyo', 'Kyoto', 'Beijing', 'Shanghai', 'Hong Kong', 'Singapore', 'Seoul', 'Bangkok', 'Delhi',
           'Mumbai', 'Sydney', 'Melbourne', 'Auckland', 'Cairo', 'Tunis', 'Lagos', 'Nairobi', 'Johannesburg', 'Dubai', 'Tel Aviv', 'Reykjavik'],
    'it': ['Londra', 'Edimburgo', 'Dublino', 'Parigi', 'Lione', 'Marsiglia', 'Nizza', 'Berlino', 'Monaco di Baviera', 'Colonia', 'Francoforte', 'Vienna',
           'Zurigo', 'Ginevra', 'Lugano', 'Madrid', 'Siviglia', 'Barcellona', 'Lisbona', 'Amsterdam', 'Bruxelles', 'Anversa', 'Copenaghen', 'Stoccolma',
           'Oslo', 'Varsavia', 'Cracovia', 'Praga', 'Budapest', 'Bucarest', 'Belgrado', 'Lubiana', 'Zagabria', 'Atene', 'Istanbul', 'Mosca', 'Kiev',
           'New York', 'Los Angeles', 'Chicago', 'Boston', 'San Francisco', 'Toronto', 'Città del Messico', 'Buenos Aires', 'San Paolo', 'Tokyo',
           'Pechino', 'Shanghai', 'Hong Kong', 'Singapore', 'Seul', 'Nuova Delhi', 'Sydney', 'Il Cairo', 'Tunisi', 'Nairobi', 'Dubai', 'Gerusalemme']}


class Lists:
    """The names of one part, by language: (given names, surnames), cities, countries. What is kept for `test` is Italian, and
    `test` has nothing else: the English set that is measured with brings its own names."""

    def __init__(self, faker_file, italian_folder, part):
        def keep(words, locale='it'):
            part_of = part if locale == 'it' else 'all'
            return sorted({w for w in words if in_part(w, part_of) and LATIN.match(w) and len(w) > 1})
        faker = json.load(open(faker_file))
        seed = json.load(open(italian_folder / 'faker_it_IT.json'))
        self.names, self.cities = {}, {}
        for locale, lists in faker.items():
            person, location = lists.get('person') or {}, lists.get('location') or {}
            given, family = keep(words_of(person.get('first_name')), locale), keep(words_of(person.get('last_name')), locale)
            if len(given) > 40 and len(family) > 12 and locale not in ('base', 'en_BORK', 'eo', 'cy', 'bn_BD', 'ta_IN'):
                self.names[locale] = (given, family)
            cities = keep(words_of(location.get('city_name')), locale)
            if len(cities) > 3 and locale not in ('cy', 'bn_BD', 'ta_IN', 'eo', 'hu', 'sv'): self.cities[locale] = cities
        italian = [seed['first_names_male'], seed['first_names_female'], seed['last_names']]
        given, family = self.names['it']
        self.names['it'] = (sorted({*given, *keep(italian[0] + italian[1])}), sorted({*family, *keep(italian[2])}))
        if part == 'test': self.names, self.cities = {'it': self.names['it']}, {'it': self.cities['it']}
        self.world = {language: keep(cities) for language, cities in WORLD_CITIES.items()}
        towns = [json.loads(line) for line in open(italian_folder / 'comuni.jsonl')]
        self.towns = [(t['nome'], t['sigla']) for t in towns if in_part(t['nome'], part)]
        self.big_towns = [(t['nome'], t['sigla']) for t in towns if t['popolazione'] > 60000 and in_part(t['nome'], part)]
        # There are only so many countries: everybody knows them all.
        self.countries = {'en': [c for c in words_of(faker['en']['location']['country']) if LATIN.match(c)], 'it': seed['countries']}
        self.jobs = words_of(faker['en']['person'].get('job_type'))
        self.nouns = [w for w in words_of(faker['en']['company'].get('noun')) if w.isalpha()]


class Filler:
    def __init__(self, lists, seed, language):
        self.lists, self.random, self.language = lists, random.Random(seed), language

    def pick(self, options): return self.random.choice(options)
    def chance(self, share): return self.random.random() < share
    def digits(self, pattern): return re.sub('#', lambda _: str(self.random.randrange(10)), pattern)

    def invented(self, syllables=2):
        word = ''.join(self.pick(ONSETS) + self.pick(NUCLEI) for _ in range(self.random.randint(1, syllables))) + self.pick(CODAS)
        return (word + self.pick(['', 'a', 'o', 'i', 'sson', 'ov', 'ini', 'ez', 'ski'])).capitalize()

    def locale(self):
        home = 'it' if self.language == 'it' else 'en'
        home = home if home in self.lists.names else 'it'
        return home if self.chance(0.6 if home == 'it' else 0.35) else self.pick(sorted(self.lists.names))

    def first(self): return self.invented() if self.chance(0.08) else self.pick(self.lists.names[self.locale()][0])
    def last(self): return self.invented(3) if self.chance(0.12) else self.pick(self.lists.names[self.locale()][1])

    def person(self):
        locale = self.locale()
        given, family = self.lists.names[locale]
        first = self.invented() if self.chance(0.08) else self.pick(given)
        last = self.invented(3) if self.chance(0.12) else self.pick(family if self.chance(0.8) else self.lists.names[self.locale()][1])
        way = self.random.random()
        if way < 0.05: return f'{first} {self.pick(given)} {last}'
        if way < 0.11: return f'{first} {self.pick("ABCDEFGHJKLMNPRST")}. {last}'
        if way < 0.15: return f'{first[0]}. {last}'
        if way < 0.19: return f'{first} {last}-{self.pick(family)}'
        if way < 0.23: return first + ' ' + self.pick(PARTICLES) + last
        if way < 0.25: return f'{first} {last} {self.pick(["Jr.", "MD", "PhD", "III"])}'
        return f'{first} {last}'

    def city(self):
        way = self.random.random()
        if self.chance(0.15): return self.pick(self.lists.world[self.language])
        if self.language == 'it' and way < 0.75: return self.pick(self.lists.towns if self.chance(0.5) else self.lists.big_towns)[0]
        if way < 0.12: return self.pick(self.lists.towns)[0]
        if way < 0.25:
            return self.pick(['Bad {}', '{}ville', '{}-sur-{}', 'Saint-{}', '{}köping', '{}halom', 'Nowy {}', '{} am Main', 'Port {}', '{}stad', '{}by',
                              'San {}', '{}burg', 'New {}', '{} Springs', 'Lake {}', '{}ovice', '{} u Brna', 'Sankt {}', '{}grad', '{}ton', 'East {}',
                              'Los {}', 'Villa {}', '{}sele', 'Upper {}']).format(self.last().split()[0], self.first().split()[0])
        city = self.pick(self.lists.cities[self.pick(sorted(self.lists.cities))])
        return city.upper() if self.chance(0.05) else city

    def country(self): return self.pick(self.lists.countries[self.language])

    def org(self):
        way = self.random.random()
        noun = lambda: self.pick(self.lists.nouns).capitalize()
        last = self.last()
        if self.language == 'it':
            if way < 0.22: return f'{last} {self.pick(SUFFIXES_IT)}'
            if way < 0.38: return f'{last} {self.pick(TRADES_IT)}' + (f' {self.pick(SUFFIXES_IT)}' if self.chance(0.6) else '')
            if way < 0.50: return f'{self.pick(FRONTS_IT)} {last if self.chance(0.6) else self.city()}'
            if way < 0.56: return f'{last} & {self.last()}' + (f' {self.pick(SUFFIXES_IT)}' if self.chance(0.4) else '')
            if way < 0.64: return f'{self.invented(3)} {self.pick(SUFFIXES_IT)}'
        else:
            if way < 0.20: return f'{last} {self.pick(SUFFIXES)}'
            if way < 0.28: return f'{last}, {self.last()} and {self.last()}'
            if way < 0.34: return f'{last}-{self.last()}'
            if way < 0.46: return f'{noun()} {self.pick(TRADES)}'
            if way < 0.52: return f'{self.pick([last, self.invented(3)])} {self.pick(TRADES)}'
            if way < 0.55: return f'{self.city()} {self.pick(TRADES)}'
        if way < 0.68: return self.pick(BRANDS)
        if way < 0.80: return noun() + self.pick(self.lists.nouns).lower() if self.chance(0.6) else noun() + noun()
        if way < 0.92: return self.invented(3) + self.pick(['', 'ly', 'ify', 'io', 'tech', 'soft', 'gov', 'hub', 'matic', 'lytics', 'ware'])
        return self.pick(['The ', '']) + f'{noun()} {noun()}' + (f' {self.pick(TRADES)}' if self.chance(0.3) else '')

    def street_only(self):
        if self.language == 'it':
            kind = self.pick(STREETS_IT)
            name = self.pick(HEROES_IT) if self.chance(0.45) else (self.person() if self.chance(0.4) else self.last())
            return (kind.capitalize() if self.chance(0.4) else kind) + ' ' + name
        way, last = self.random.random(), self.last()
        if way < 0.55: return f'{self.pick([last, last, self.first(), self.digits("#th"), self.pick(self.lists.nouns).capitalize()])} {self.pick(STREETS_EN)}'
        return self.pick(['Rue {}', 'rue de {}', '{}straße', '{}strasse', '{}str.', '{}weg', '{}gatan', '{}vägen', 'Calle {}', 'Avenida {}', 'ul. {}', '{} u.',
                          '{} utca', '{}laan', '{}straat', 'Via {}', 'Rua {}', '{} sokak', '{}vej', '{}veien', '{}katu', 'Alt {}', 'Grote {}', 'C/ {}',
                          'Piata {}', 'Ctra. {}', '{}platz', 'Quai {}', 'Plaza {}', 'Strada {}', '{}']).format(last)

    def number(self):
        number = str(self.random.randint(1, 250 if self.language == 'it' or self.chance(0.6) else 9999))
        return number + self.pick(['/A', 'B', '/3', ' bis', '/b', '-D']) if self.chance(0.1) else number

    def street(self):
        if self.language == 'it': return self.street_only() + self.pick([' ', ', ', ' ', ', n. ', ' n. ', ' n.']) + self.number()
        return f'{self.number()} {self.street_only()}' if self.chance(0.65) else f'{self.street_only()} {self.number()}'

    def secondary(self): return self.pick(['Apt. ###', 'Suite ###', 'Apt ##', 'Unit #', '#th floor', 'Flat #', 'Room ###', 'App. ##'])

    def zip(self): return self.digits(self.pick(['#####', '#####', '#####', '#####-####', '####', '## ###']))
    def cap(self): return self.digits(self.pick(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) + '####')

    def address(self):
        r = self.random.random()
        if self.language == 'it':
            town, province = self.pick(self.lists.towns if self.chance(0.5) else self.lists.big_towns)
            tail = self.pick(['{c} {t} ({p})', '{c} {t} {p}', '{c} - {t} ({p})', '{c} {t}', '{t} ({p})', '{t}']).format(c=self.cap(), t=town, p=province)
            return self.street() + self.pick([', ', ' - ', '\n', ', ', ' ']) + tail
        if r < 0.05: return self.digits(self.pick(['PSC ####, Box ####\nAPO AE #####', 'Unit #### Box ####\nDPO AP #####', 'USNS ' + self.last() + '\nFPO AA #####']))
        if r < 0.08: return self.digits('P.O. Box ###, ') + f'{self.city()} {self.zip()}'
        number, street, city = self.number(), self.street_only(), self.city()
        if self.chance(0.5): street += ' ' + self.number()
        second = self.digits(self.secondary())
        tail = self.pick(['{st} {zip}', '{zip}', '{country} {zip}', '{country}', 'nan', '{st}', 'nan\n {country} {zip}']).format(
            st=self.pick(STATES), zip=self.zip(), country=self.country())
        if r < 0.25: return f'{number} {street}\n{city}\n, {tail.replace(" ", chr(10) + " ")}'
        if r < 0.40: return f'{number} {street}\n {second}\n {city}\n {tail}'
        if r < 0.55: return f'{number} {street} {second} {city} {tail}'
        if r < 0.80: return f'{number} {street}, {city}, {tail}'
        return f'{number} {street}, {city}' if r < 0.9 else f'{number} {street} {second}\n {city}\n {tail}'

    def phone(self):
        patterns = (['3## #######', '3##-#######', '3#########', '+39 3## #######', '+39 3## ### ####', '0## ######', '02 ########', '06/########',
                     '0##-#######', '+39 0## #######', '3## ## ## ###', '0039 3## #######', '3##.#######'] if self.language == 'it' else
                    ['###-###-####', '(###) ###-####', '+1-###-###-####x###', '+1 ### ### ####', '###.###.####', '### ####', '#### ####', '0## ### ####',
                     '0#### ######', '(##) ###-###', '##-##-##-##', '### ## ###', '0#### ## ## ##', '+44 20 #### ####', '+49 ### #######', '0### #######',
                     '001-###-###-####x###', '###-###-####x#####', '(0#) #### ####', '### ### ###', '## ## ## ##', '06-## ### ###'])
        return self.digits(self.pick(patterns))

    def date(self):
        day, month, year = self.random.randint(1, 28), self.random.randint(1, 12), self.random.randint(1925, 2026)
        name = self.pick(MONTHS[self.language])
        month = MONTHS[self.language].index(name) + 1
        if self.language == 'it': return self.pick([f'{day} {name} {year}', f'{day}/{month}/{year}', f'{day:02}/{month:02}/{year}', f'{day}.{month}.{year}', f'{day:02}-{month:02}-{year}'])
        return self.pick([f'{name} {day}, {year}', f'{day} {name} {year}', f'{month}/{day}/{year}', f'{year}-{month:02}-{day:02}', f'{month:02}/{day:02}/{year}'])

    def email(self):
        name = re.sub('[^a-z.]', '', self.pick(['{}.{}', '{}{}', '{}.{}']).format(self.first(), self.last()).lower()) or 'info'
        return f'{name}@{self.invented(2).lower().encode("ascii", "ignore").decode()}x.{self.pick(["com", "it", "org", "de", "co.uk"])}'

    def luhn(self, digits):
        for last in '0123456789':
            total = sum((d if i % 2 == 0 else (d * 2 - 9 if d > 4 else d * 2)) for i, d in enumerate(map(int, reversed(digits + last))))
            if total % 10 == 0: return digits + last

    def card(self):
        digits = self.luhn(self.digits(self.pick(['4', '51', '55', '52']) + '#' * 15)[:15])
        return digits if self.chance(0.6) else ' '.join(digits[i:i + 4] for i in range(0, 16, 4))

    def iban(self):
        if self.language == 'it':
            account = self.digits('#' * 22)
            country, account = 'IT', check_letter(account) + account
        else: country, account = self.pick([('DE', self.digits('#' * 18)), ('GB', 'WEST' + self.digits('#' * 14))])
        number = ''.join(str(int(c, 36)) for c in account + country + '00')
        iban = f'{country}{98 - int(number) % 97:02}{account}'
        return iban if self.chance(0.5) else ' '.join(iban[i:i + 4] for i in range(0, len(iban), 4))

    def cf(self):
        letters = lambda: ''.join(self.pick('BCDFGLMNPRSTVZ') for _ in range(3))
        code = letters() + letters() + self.digits('##') + self.pick('ABCDEHLMPRST') + f'{self.random.choice([*range(1, 32), *range(41, 72)]):02}' + self.pick('ABCDEFGHILZ') + self.digits('###')
        code += check_letter(code)
        return code.lower() if self.chance(0.1) else code

    def vat(self): return self.luhn(self.digits('#' * 10))
    def plate(self): return ''.join(self.pick('ABCDEFGHJKLMNPRSTVWXYZ') for _ in range(2)) + self.digits('###') + ''.join(self.pick('ABCDEFGHJKLMNPRSTVWXYZ') for _ in range(2))
    def amount(self): return self.pick(['€ #.###,00', '### euro', '#.### €']) if self.language == 'it' else self.pick(['$###', '€#,###', '### dollars'])
